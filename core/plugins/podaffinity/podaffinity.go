// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Apart are the keys of the required anti-affinity terms that are about p itself.
func (pl *InterPodAffinity) Apart(s cluster.Snapshot, p *cluster.Pod) []string {
	own := pl.own(p)
	if own.err != nil {
		return nil
	}
	var keys []string
	for _, t := range resolved(s, own.repel) {
		if t.Matches(p.Namespace, nil, p.Spec.Labels) {
			keys = append(keys, t.TopologyKey)
		}
	}
	return keys
}

// InterPodAffinity puts pods near the pods they want near and far from those they want far: required terms filter,
// preferred terms score. Both work in both directions: the required anti-affinity and the preferences of pods that are
// on nodes already bind the pod that waits (upstream: plugins/interpodaffinity).
//
// Pods that terminate count as long as they are there. What the terms of the waiting pod select is counted by
// cluster.Counter, what the pods on nodes carry by cluster.Carried; no decision looks at pods.
type InterPodAffinity struct {
	args InterPodAffinityArgs
	// known remembers what was read of pods, so that those of one template are read once.
	known map[podKind]*ownTerms // spec and namespace -> terms
	// state is what PrepareFilter was last asked about, for Advise; asked reports whether it was.
	state cluster.Snapshot
	asked bool
	// marks and sums are memory for use within one call.
	marks []bool
	sums  []int64
}

type podKind struct {
	spec      *cluster.PodSpec
	namespace string
}

// maxKnownPods bounds InterPodAffinity.known; past it, it starts anew.
const maxKnownPods = 4096

// InterPodAffinityName is its name in configurations.
const InterPodAffinityName = "InterPodAffinity"

// InterPodAffinityArgs are its arguments.
type InterPodAffinityArgs struct {
	// HardPodAffinityWeight is what a required affinity term of a pod on a node adds to the score of nodes near it,
	// 0 to 100.
	HardPodAffinityWeight int32
	// IgnorePreferredTermsOfExistingPods leaves pods without preferred terms of their own unscored.
	IgnorePreferredTermsOfExistingPods bool
}

// DefaultInterPodAffinityArgs are upstream's defaults.
func DefaultInterPodAffinityArgs() InterPodAffinityArgs {
	return InterPodAffinityArgs{HardPodAffinityWeight: 1}
}

// NewInterPodAffinity checks the arguments.
func NewInterPodAffinity(args InterPodAffinityArgs) (*InterPodAffinity, error) {
	if w := args.HardPodAffinityWeight; w < 0 || w > 100 {
		return nil, fmt.Errorf("%s: hardPodAffinityWeight %d is not in 0 to 100", InterPodAffinityName, w)
	}
	return &InterPodAffinity{args: args, known: map[podKind]*ownTerms{}}, nil
}

// Name is InterPodAffinityName.
func (*InterPodAffinity) Name() string { return InterPodAffinityName }

// Reads declares the pods of other nodes, and namespaces.
func (*InterPodAffinity) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsPods | plugin.ReadsRows | plugin.ReadsObjects | plugin.ReadsWholePod
}

// The codes. One rejection has one of them: own affinity goes first, then own anti-affinity. Evictions can help against
// the last two only.
const (
	notAttracted     plugin.Code = 1
	repelledByOwn    plugin.Code = 2
	repelledByOthers plugin.Code = 4
)

func podAffinityReasons(c plugin.Code) []string {
	switch {
	case c&notAttracted != 0:
		return []string{"node(s) didn't match pod affinity rules"}
	case c&repelledByOwn != 0:
		return []string{"node(s) didn't match pod anti-affinity rules"}
	}
	return []string{"node(s) didn't satisfy existing pods anti-affinity rules"}
}

// own is what the plugin knows of a pod.
func (pl *InterPodAffinity) own(p *cluster.Pod) *ownTerms {
	key := podKind{p.Spec, p.Namespace}
	known := pl.known[key]
	if known == nil {
		if len(pl.known) >= maxKnownPods {
			clear(pl.known)
		}
		known = readOwn(p)
		pl.known[key] = known
	}
	return known
}

// PrepareFilter refuses pods with terms that cannot be read, preferred ones included. It has nothing to say about pods
// without required terms that no pod on a node repels.
func (pl *InterPodAffinity) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	pl.state, pl.asked = s, true
	own := pl.own(p)
	if own.err != nil {
		return plugin.FilterPlan{Reject: fmt.Sprintf("parsing pod: %v", own.err)}
	}
	if f := pl.filter(s, p); f != nil {
		return plugin.FilterPlan{Filter: f}
	}
	return plugin.FilterPlan{}
}

// Skips reports whether the plugin would score no node: no pod has preferences, or only others do and they are ignored.
func (pl *InterPodAffinity) Skips(s cluster.Snapshot, p *cluster.Pod) bool {
	return pl.ignores(p) || pl.own(p).err == nil && pl.score(s, p) == nil
}

// ignores goes by the fields, also of pods whose terms cannot be read.
func (pl *InterPodAffinity) ignores(p *cluster.Pod) bool {
	if !pl.args.IgnorePreferredTermsOfExistingPods {
		return false
	}
	near, far := p.Spec.PodAffinity, p.Spec.PodAntiAffinity
	return (near == nil || len(near.PreferredDuringSchedulingIgnoredDuringExecution) == 0) &&
		(far == nil || len(far.PreferredDuringSchedulingIgnoredDuringExecution) == 0)
}

// PrepareScore scores nothing: see PrepareUncached.
func (*InterPodAffinity) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Normal is not asked of an UncachedScorer.
func (*InterPodAffinity) Normal() plugin.Normal { return plugin.AsIs }

// PrepareUncached has nothing to say when no term is about a pod on a node with the term's label.
func (pl *InterPodAffinity) PrepareUncached(s cluster.Snapshot, p *cluster.Pod,
	_ []cluster.NodeIdx) (plugin.UncachedScore,
	error) {
	if pl.ignores(p) {
		return nil, nil
	}
	if err := pl.own(p).err; err != nil {
		return nil, fmt.Errorf("failed to parse pod: %w", err)
	}
	if score := pl.score(s, p); score != nil {
		return score, nil
	}
	return nil, nil
}
