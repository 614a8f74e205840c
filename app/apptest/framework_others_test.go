// SPDX-License-Identifier: Apache-2.0

package apptest

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/app"
)

// grouped is a plugin that rejects pods with the label group until it has seen a group of that name. Groups are objects
// that only the plugin knows.
type grouped struct {
	name string
	log  *[]string
	seen map[string]bool // group -> true
}

const groupResource = "podgroups.v1alpha1.scheduling.x-k8s.io"

func (g *grouped) Name() string { return g.name }

func (g *grouped) PreFilter(_ context.Context, _ fwk.CycleState, p *v1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult,
	*fwk.Status) {
	if group := p.Labels["group"]; group != "" && !g.seen[group] {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "there is no group "+group)
	}
	return nil, nil
}

func (g *grouped) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (g *grouped) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event: fwk.ClusterEvent{Resource: groupResource, ActionType: fwk.Add | fwk.Delete},
		QueueingHintFn: func(_ klog.Logger, p *v1.Pod, was, is any) (fwk.QueueingHint, error) {
			*g.log = append(*g.log, fmt.Sprintf("%s hears of %v, before %v", p.Name, nameOf(is), nameOf(was)))
			if is == nil {
				return fwk.QueueSkip, nil
			}
			name := is.(metav1.Object).GetName()
			g.seen[name] = true
			if name != p.Labels["group"] {
				return fwk.QueueSkip, nil
			}
			return fwk.Queue, nil
		},
	}}, nil
}

func nameOf(obj any) any {
	if m, is := obj.(metav1.Object); is {
		return m.GetName()
	}
	return obj
}

const groupedProfile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: A}]}
    postFilter: {disabled: [{name: "*"}]}
`

// TestFrameworkOtherObjects plays testdata/framework-others.txt: events of resources that only a plugin knows wake the
// pods that it rejected, as its hint says.
func TestFrameworkOtherObjects(t *testing.T) {
	playStories(t, "framework-others.txt", groupedProfile, func(log *[]string) app.Plugins {
		return pluginsOf(t, func(name string, _ fwk.Handle) fwk.Plugin { return &grouped{name, log, map[string]bool{}} })
	})
}
