// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// NodeDeclaredFeatures keeps a pod off nodes that do not declare the features it needs (upstream:
// plugins/nodedeclaredfeatures, KEP-5328). Intake works out which these are.
type NodeDeclaredFeatures struct{}

// NodeDeclaredFeaturesName is its name in configurations.
const NodeDeclaredFeaturesName = "NodeDeclaredFeatures"

// Name is NodeDeclaredFeaturesName.
func (NodeDeclaredFeatures) Name() string { return NodeDeclaredFeaturesName }

// Reads declares the features of the node.
func (NodeDeclaredFeatures) Reads() plugin.Reads { return plugin.ReadsNode }

// PrepareFilter has nothing to say about pods that need no feature, which are nearly all.
func (NodeDeclaredFeatures) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	switch {
	case p.Spec.FeaturesErr != "":
		return plugin.FilterPlan{Err: errors.New(p.Spec.FeaturesErr)}
	case len(p.Spec.Features) == 0:
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: featureFilter{p.Spec.Features}}
}

// featureFilter holds the features that are needed, sorted.
type featureFilter struct{ need []string }

const featureMissing plugin.Code = 1

// judge walks both sorted lists once.
func (f featureFilter) judge(node *cluster.Node) plugin.Code {
	has := node.Features
	for _, name := range f.need {
		i, ok := slices.BinarySearch(has, name)
		if !(ok) {
			return featureCode()
		}
		has = has[i:]
	}
	return plugin.Fit
}

func featureCode() plugin.Code {
	return featureMissing | plugin.Unresolvable
}

func (f featureFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return f.judge(v.Node)
}

func (f featureFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	for n := lo; n < hi; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := f.judge(s.Node(n)); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

func (featureFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) didn't match Pod's required features"}
}

// Wakes on nodes whose features change, and on updates of the pod that change what it needs.
func (NodeDeclaredFeatures) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeDeclaredFeature},
			Alike: true, Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				if ch.OldNode != nil && slices.Equal(ch.OldNode.Features, ch.NewNode.Features) {
					return plugin.SkipHint
				}
				return plugin.QueueHint
			}},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.Update},
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				was, is := ch.OldPod.Spec, ch.NewPod.Spec
				if was.FeaturesErr == "" && is.FeaturesErr == "" && slices.Equal(was.Features, is.Features) {
					return plugin.SkipHint
				}
				return plugin.QueueHint
			}},
	}
}

// Advise names the first feature that the node lacks.
func (NodeDeclaredFeatures) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for _, name := range p.Spec.Features {
		if !slices.Contains(v.Node.Features, name) {
			r.Do = fmt.Sprintf("upgrade %s, or switch on there what gives it the feature %s", r.Node, name)
			return
		}
	}
}
