// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
)

// PodTopologySpread spreads the pods that a selector matches over the values of a node label: constraints that must
// hold filter, those that should hold score (upstream: plugins/podtopologyspread; KEP-895, 3022, 3094, 3243). A pod
// without constraints gets the default ones, with the selector of the services and the controller that it belongs
// to.
//
// Pods that are being deleted do not count, nor do pods of other namespaces. A selector that matches everything counts
// no pod at all, as upstream has it; the pod in hand still counts for itself.
type PodTopologySpread struct {
	defaults []v1.TopologySpreadConstraint
	system   bool
	// plans caches the evaluated constraints; bounded by maxSpreadPlans.
	plans map[spreadKey]*spreadPlan // state, spec and namespace of a pod -> its constraints
}

// PodTopologySpreadName is its name in configurations.
const PodTopologySpreadName = "PodTopologySpread"

// PodTopologySpreadArgs are the arguments of PodTopologySpread.
type PodTopologySpreadArgs struct {
	// DefaultConstraints are for pods without constraints. They have no selector.
	DefaultConstraints []v1.TopologySpreadConstraint
	// System takes the built-in default constraints instead, which DefaultConstraints must allow by being
	// empty: hosts within a skew of 3 and zones within 5, both as a preference. Nodes without a zone then still count.
	System bool
}

// DefaultPodTopologySpreadArgs are upstream's defaults.
func DefaultPodTopologySpreadArgs() PodTopologySpreadArgs { return PodTopologySpreadArgs{System: true} }

// systemSpread is what System stands for.
func systemSpread() []v1.TopologySpreadConstraint {
	return []v1.TopologySpreadConstraint{
		{TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 3},
		{TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.ScheduleAnyway, MaxSkew: 5},
	}
}

// NewPodTopologySpread returns the plugin, or what is wrong with its arguments.
func NewPodTopologySpread(args PodTopologySpreadArgs) (*PodTopologySpread, error) {
	pl := &PodTopologySpread{defaults: args.DefaultConstraints, system: args.System, plans: map[spreadKey]*spreadPlan{}}
	if args.System {
		if len(args.DefaultConstraints) != 0 {
			return nil, fmt.Errorf("%s: system defaulting and %d default constraints exclude each other",
				PodTopologySpreadName, len(args.DefaultConstraints))
		}
		pl.defaults = systemSpread()
	}
	for i := range pl.defaults {
		c := &pl.defaults[i]
		switch {
		case c.MaxSkew <= 0:
			return nil, fmt.Errorf("%s: defaultConstraints[%d]: maxSkew %d is not above 0", PodTopologySpreadName, i,
				c.MaxSkew)
		case c.TopologyKey == "":
			return nil, fmt.Errorf("%s: defaultConstraints[%d]: no topologyKey", PodTopologySpreadName, i)
		case c.WhenUnsatisfiable != v1.DoNotSchedule && c.WhenUnsatisfiable != v1.ScheduleAnyway:
			return nil, fmt.Errorf("%s: defaultConstraints[%d]: whenUnsatisfiable %q is not known",
				PodTopologySpreadName, i, c.WhenUnsatisfiable)
		case c.LabelSelector != nil:
			return nil, fmt.Errorf("%s: defaultConstraints[%d]: has a labelSelector; selectors are found for each pod",
				PodTopologySpreadName, i)
		}
	}
	return pl, nil
}

// Name is PodTopologySpreadName.
func (*PodTopologySpread) Name() string { return PodTopologySpreadName }

// Reads declares the pods of other nodes, and the owners of the pod.
func (*PodTopologySpread) Reads() plugin.Reads {
	return plugin.ReadsNode | plugin.ReadsPods | plugin.ReadsRows | plugin.ReadsObjects | plugin.ReadsWholePod
}

// spreadConstraint is a constraint made ready.
type spreadConstraint struct {
	key                 string
	maxSkew, minDomains int32
	selector            labels.Selector
	// honorsAffinity and honorsTaints leave out nodes that the pod does not select, or does not tolerate.
	honorsAffinity, honorsTaints bool
	// self is 1 where the selector matches the pod itself.
	self int64
	// counts names the pods that count; counted is false where none do.
	counts  cluster.Selection
	counted bool
}

// spreadPlan is the evaluated constraints of a pod.
type spreadPlan struct {
	hard, soft []spreadConstraint
	// hardErr and softErr say why constraints of a kind cannot be read.
	hardErr, softErr error
	// needsKeys: a node without the keys of all soft constraints has no part in scoring.
	needsKeys bool
	// rules are the pod's node selector and required affinity; selects is false where it has neither.
	rules       nodematch.Selector
	selects     bool
	tolerations []v1.Toleration

	fromObjects bool // default constraints: good while objects stays as it is
	objects     [4]uint64
}

// spreadKey identifies a plan. Revisions of objects mean nothing across stores, hence the state.
type spreadKey struct {
	state     cluster.Snapshot
	spec      *cluster.PodSpec
	namespace string
}

const maxSpreadPlans = 4096

// plan returns the evaluated constraints of a pod.
func (pl *PodTopologySpread) plan(s cluster.Snapshot, p *cluster.Pod) *spreadPlan {
	key := spreadKey{s, p.Spec, p.Namespace}
	if have := pl.plans[key]; have != nil && (!have.fromObjects || have.objects == defaultRevisions(s)) {
		return have
	}
	if len(pl.plans) >= maxSpreadPlans {
		clear(pl.plans)
	}
	made := pl.makePlan(s, p)
	pl.plans[key] = made
	return made
}

func (pl *PodTopologySpread) makePlan(s cluster.Snapshot, p *cluster.Pod) *spreadPlan {
	plan := &spreadPlan{
		needsKeys:   len(p.Spec.Spread) > 0 || !pl.system,
		tolerations: p.Spec.Tolerations,
		selects:     len(p.Spec.NodeSelector) > 0 || p.Spec.Required != nil,
	}
	if plan.selects {
		plan.rules = nodematch.CompileAnd(p.Spec.NodeSelector, p.Spec.Required)
	}
	if len(p.Spec.Spread) > 0 {
		var err error
		if plan.hard, err = spreadConstraints(p.Spec.Spread, p, v1.DoNotSchedule, nil); err != nil {
			plan.hardErr = fmt.Errorf("obtaining pod's hard topology spread constraints: %w", err)
		}
		if plan.soft, err = spreadConstraints(p.Spec.Spread, p, v1.ScheduleAnyway, nil); err != nil {
			plan.softErr = fmt.Errorf("obtaining pod's soft topology spread constraints: %w", err)
		}
		return plan
	}
	if len(pl.defaults) == 0 {
		return plan
	}
	plan.fromObjects, plan.objects = true, defaultRevisions(s)
	if selector := defaultSelector(s, p); !selector.Empty() {
		// Default constraints have no selectors of their own that could be unreadable.
		plan.hard, _ = spreadConstraints(pl.defaults, p, v1.DoNotSchedule, selector)
		plan.soft, _ = spreadConstraints(pl.defaults, p, v1.ScheduleAnyway, selector)
	}
	return plan
}

// spreadConstraints makes the constraints of one kind ready; selector, if not nil, replaces theirs.
func spreadConstraints(list []v1.TopologySpreadConstraint, p *cluster.Pod, kind v1.UnsatisfiableConstraintAction,
	selector labels.Selector) ([]spreadConstraint, error) {
	var out []spreadConstraint
	for i := range list {
		from := &list[i]
		if from.WhenUnsatisfiable != kind {
			continue
		}
		c := spreadConstraint{key: from.TopologyKey, maxSkew: from.MaxSkew, minDomains: 1, selector: selector,
			honorsAffinity: true}
		if c.selector == nil {
			own, err := metav1.LabelSelectorAsSelector(from.LabelSelector)
			if err != nil {
				return nil, err
			}
			c.selector = withLabelsOf(own, from.MatchLabelKeys, p)
		}
		if from.MinDomains != nil {
			c.minDomains = *from.MinDomains
		}
		if from.NodeAffinityPolicy != nil {
			c.honorsAffinity = *from.NodeAffinityPolicy == v1.NodeInclusionPolicyHonor
		}
		if from.NodeTaintsPolicy != nil {
			c.honorsTaints = *from.NodeTaintsPolicy == v1.NodeInclusionPolicyHonor
		}
		if c.selector.Matches(labels.Set(p.Spec.Labels)) {
			c.self = 1
		}
		if c.counted = !c.selector.Empty(); c.counted {
			term := cluster.Term{Namespaces: []string{p.Namespace}, Labels: c.selector, Everywhere: false}
			c.counts = cluster.Select(term)
		}
		out = append(out, c)
	}
	return out, nil
}

// withLabelsOf narrows a selector to pods that have the same values as p for the labels named, as far as p has them
// (KEP-3243). A selector that matches nothing stays as it is.
func withLabelsOf(s labels.Selector, keys []string, p *cluster.Pod) labels.Selector {
	same := labels.Set{}
	for _, key := range keys {
		if value, ok := p.Spec.Labels[key]; ok {
			same[key] = value
		}
	}
	requirements, selectable := s.Requirements()
	if len(same) == 0 || !selectable {
		return s
	}
	return labels.SelectorFromSet(same).Add(requirements...)
}

// PrepareFilter has nothing to say about pods without constraints that must hold. One that cannot be read fails the
// attempt.
func (pl *PodTopologySpread) PrepareFilter(s cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	plan := pl.plan(s, p)
	switch {
	case plan.hardErr != nil:
		return plugin.FilterPlan{Err: fmt.Errorf("get constraints from pod: %w", plan.hardErr)}
	case len(plan.hard) == 0:
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: newSpreadFilter(s, plan, p.Namespace)}
}

// Skips reports whether the pod has no constraints that should hold.
func (pl *PodTopologySpread) Skips(s cluster.Snapshot, p *cluster.Pod) bool {
	plan := pl.plan(s, p)
	return plan.softErr == nil && len(plan.soft) == 0
}

// PrepareScore scores nothing: scores depend on pods on other nodes, see PrepareUncached.
func (*PodTopologySpread) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return nil }

// Normal is not used, see spreadScore.Normalize.
func (*PodTopologySpread) Normal() plugin.Normal { return plugin.AsIs }

// PrepareUncached skips pods without constraints that should hold.
func (pl *PodTopologySpread) PrepareUncached(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx) (
	plugin.UncachedScore, error) {
	return pl.prepareUncached(s, p, fit, nil)
}

// prepareUncached takes the first rows of groups and their sizes, or all rows and no sizes.
func (pl *PodTopologySpread) prepareUncached(s cluster.Snapshot, p *cluster.Pod, fit []cluster.NodeIdx,
	sizes []int) (plugin.UncachedScore, error) {
	plan := pl.plan(s, p)
	switch {
	case s.Nodes() == 0:
		return nil, nil
	case plan.softErr != nil:
		return nil, fmt.Errorf("calculating preScoreState: %w", plan.softErr)
	case len(plan.soft) == 0:
		return nil, nil
	}
	return newSpreadScore(s, plan, p.Namespace, fit, sizes), nil
}
