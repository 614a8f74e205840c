// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// maxTries bounds the replays of one shrink: a scenario that is a little larger
// than it could be is still useful.
const maxTries = 4000

// Shrink makes a scenario smaller as long as a difference remains: fewer
// asks, changes, nodes and pods, then fewer fields of what is left. The
// difference stays one of its kind.
func Shrink(upstream, ours Subject, s *scenario.Scenario) *scenario.Scenario {
	d, _ := replay(upstream, ours, s)
	sh := &shrinker{upstream: upstream, ours: ours, best: s, kind: kind(d)}
	for {
		before := sh.kept
		sh.lists()
		sh.pods()
		sh.nodes()
		sh.profile()
		if sh.kept == before || sh.tries >= maxTries {
			return sh.best
		}
	}
}

type shrinker struct {
	upstream, ours Subject
	best           *scenario.Scenario
	tries, kept    int
	kind           string // of the difference
}

// kind is what a difference is about, without its figures and names.
func kind(difference string) string {
	if _, rest, ok := strings.Cut(difference, ": "); ok && strings.HasPrefix(difference, "ask ") {
		difference = rest
	}
	if strings.HasPrefix(difference, "node ") {
		return "node"
	}
	for _, end := range []string{": ", " on "} {
		if head, _, ok := strings.Cut(difference, end); ok {
			difference = head
		}
	}
	return difference
}

// try keeps the candidate if it still differs, and reports whether it does.
func (sh *shrinker) try(change func(s *scenario.Scenario)) bool {
	if sh.tries >= maxTries {
		return false
	}
	sh.tries++
	next := copyOf(sh.best)
	change(next)
	if len(next.Asks) == 0 || len(next.Nodes) == 0 {
		return false
	}
	// A scenario that either side refuses to load is another matter.
	if d, err := replay(sh.upstream, sh.ours, next); d == "" || err != nil || kind(d) != sh.kind {
		return false
	}
	sh.best = next
	sh.kept++
	return true
}

// copyOf shares objects; a caller that changes one must replace it by a copy.
func copyOf(s *scenario.Scenario) *scenario.Scenario {
	out := *s
	out.Nodes = append([]*v1.Node(nil), s.Nodes...)
	out.Bound = append([]*v1.Pod(nil), s.Bound...)
	out.Nominated = append([]*v1.Pod(nil), s.Nominated...)
	out.Objects = append([]scenario.Object(nil), s.Objects...)
	out.Asks = append([]scenario.Ask(nil), s.Asks...)
	out.Profile.Plugins = append([]scenario.Plugin(nil), s.Profile.Plugins...)
	return &out
}

// lists drops elements, halves first.
func (sh *shrinker) lists() {
	// The last ask shows the difference, so the earlier ones go first.
	dropFrom(sh, func(s *scenario.Scenario) *[]scenario.Ask { return &s.Asks })
	dropFrom(sh, func(s *scenario.Scenario) *[]*v1.Node { return &s.Nodes })
	dropFrom(sh, func(s *scenario.Scenario) *[]*v1.Pod { return &s.Bound })
	dropFrom(sh, func(s *scenario.Scenario) *[]*v1.Pod { return &s.Nominated })
	dropFrom(sh, func(s *scenario.Scenario) *[]scenario.Object { return &s.Objects })
	for i := range sh.best.Asks {
		sh.try(func(s *scenario.Scenario) { s.Asks[i].SetObjects = nil })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].DeleteObjects = nil })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].PlacePrevious = false })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].SetNodes = nil })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].DeleteNodes = nil })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].DropNominated = false })
		sh.try(func(s *scenario.Scenario) { s.Asks[i].Nominate = nil })
	}
}

func dropFrom[T any](sh *shrinker, list func(s *scenario.Scenario) *[]T) {
	for chunk := (len(*list(sh.best)) + 1) / 2; chunk >= 1; chunk /= 2 {
		for at := 0; at+chunk <= len(*list(sh.best)); {
			if !sh.try(func(s *scenario.Scenario) {
				l := list(s)
				*l = append(append([]T(nil), (*l)[:at]...), (*l)[at+chunk:]...)
			}) {
				at += chunk
			}
		}
	}
}

// podCuts each take something out of a pod.
var podCuts = []func(p *v1.Pod){
	func(p *v1.Pod) { p.Spec.NodeSelector = nil },
	func(p *v1.Pod) { p.Spec.Affinity = nil },
	func(p *v1.Pod) { cutAffinity(p, func(a *v1.Affinity) { a.NodeAffinity = nil }) },
	func(p *v1.Pod) { cutAffinity(p, func(a *v1.Affinity) { a.PodAffinity = nil }) },
	func(p *v1.Pod) { cutAffinity(p, func(a *v1.Affinity) { a.PodAntiAffinity = nil }) },
	func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = nil },
	func(p *v1.Pod) { p.Spec.TopologySpreadConstraints = cutLast(p.Spec.TopologySpreadConstraints) },
	func(p *v1.Pod) {
		if n := len(p.Spec.TopologySpreadConstraints); n > 1 {
			p.Spec.TopologySpreadConstraints = p.Spec.TopologySpreadConstraints[1:]
		}
	},
	func(p *v1.Pod) { cutTermsBetweenPods(p) },
	func(p *v1.Pod) { p.Labels = nil },
	func(p *v1.Pod) { p.OwnerReferences = nil },
	func(p *v1.Pod) { p.Spec.Tolerations = nil },
	func(p *v1.Pod) { p.Spec.Overhead = nil },
	func(p *v1.Pod) { p.Spec.Resources = nil },
	func(p *v1.Pod) { p.Spec.Volumes = nil },
	func(p *v1.Pod) { p.Spec.InitContainers = nil },
	func(p *v1.Pod) { p.Spec.InitContainers = cutLast(p.Spec.InitContainers) },
	func(p *v1.Pod) {
		if len(p.Spec.Containers) > 1 {
			p.Spec.Containers = cutLast(p.Spec.Containers)
		}
	},
	func(p *v1.Pod) { eachContainer(p, func(c *v1.Container) { c.Ports = nil }) },
	func(p *v1.Pod) { eachContainer(p, func(c *v1.Container) { c.Image = "" }) },
	func(p *v1.Pod) { eachContainer(p, func(c *v1.Container) { c.Resources = v1.ResourceRequirements{} }) },
	func(p *v1.Pod) { cutResource(p, v1.ResourceCPU) },
	func(p *v1.Pod) { cutResource(p, v1.ResourceMemory) },
	func(p *v1.Pod) { cutResource(p, v1.ResourceEphemeralStorage) },
	func(p *v1.Pod) { p.Spec.Priority = nil },
	func(p *v1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds, p.Finalizers = nil, nil, nil },
	func(p *v1.Pod) { p.Status = v1.PodStatus{NominatedNodeName: p.Status.NominatedNodeName} },
	func(p *v1.Pod) { p.Status.NominatedNodeName = "" },
	func(p *v1.Pod) { cutTerms(p, true) },
	func(p *v1.Pod) { cutTerms(p, false) },
	func(p *v1.Pod) { p.Spec.Tolerations = cutLast(p.Spec.Tolerations) },
}

func cutLast[T any](l []T) []T {
	if len(l) == 0 {
		return nil
	}
	return l[:len(l)-1]
}

func eachContainer(p *v1.Pod, f func(c *v1.Container)) {
	for i := range p.Spec.Containers {
		f(&p.Spec.Containers[i])
	}
	for i := range p.Spec.InitContainers {
		f(&p.Spec.InitContainers[i])
	}
}

func cutResource(p *v1.Pod, name v1.ResourceName) {
	eachContainer(p, func(c *v1.Container) { delete(c.Resources.Requests, name) })
}

// cutTerms takes the required or the preferred terms down to fewer.
func cutTerms(p *v1.Pod, required bool) {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return
	}
	a := p.Spec.Affinity.NodeAffinity
	if !required {
		a.PreferredDuringSchedulingIgnoredDuringExecution = cutLast(a.PreferredDuringSchedulingIgnoredDuringExecution)
		return
	}
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil && len(r.NodeSelectorTerms) > 1 {
		r.NodeSelectorTerms = cutLast(r.NodeSelectorTerms)
	} else {
		a.RequiredDuringSchedulingIgnoredDuringExecution = nil
	}
}

func cutAffinity(p *v1.Pod, cut func(a *v1.Affinity)) {
	if p.Spec.Affinity != nil {
		cut(p.Spec.Affinity)
	}
}

// cutTermsBetweenPods takes away one term of one list.
func cutTermsBetweenPods(p *v1.Pod) {
	if p.Spec.Affinity == nil {
		return
	}
	if a := p.Spec.Affinity.PodAffinity; a != nil {
		if len(a.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			a.PreferredDuringSchedulingIgnoredDuringExecution = cutLast(a.PreferredDuringSchedulingIgnoredDuringExecution)
			return
		}
		if len(a.RequiredDuringSchedulingIgnoredDuringExecution) > 1 {
			a.RequiredDuringSchedulingIgnoredDuringExecution = cutLast(a.RequiredDuringSchedulingIgnoredDuringExecution)
			return
		}
	}
	if a := p.Spec.Affinity.PodAntiAffinity; a != nil {
		if len(a.PreferredDuringSchedulingIgnoredDuringExecution) > 0 {
			a.PreferredDuringSchedulingIgnoredDuringExecution = cutLast(a.PreferredDuringSchedulingIgnoredDuringExecution)
			return
		}
		a.RequiredDuringSchedulingIgnoredDuringExecution = cutLast(a.RequiredDuringSchedulingIgnoredDuringExecution)
	}
}

func (sh *shrinker) pods() {
	for _, cut := range podCuts {
		changed := func(p *v1.Pod) *v1.Pod {
			out := p.DeepCopy()
			cut(out)
			return out
		}
		for i := range sh.best.Asks {
			sh.try(func(s *scenario.Scenario) { s.Asks[i].Pod = changed(s.Asks[i].Pod) })
		}
		for i := range sh.best.Bound {
			sh.try(func(s *scenario.Scenario) { s.Bound[i] = changed(s.Bound[i]) })
		}
		for i := range sh.best.Nominated {
			if c := changed(sh.best.Nominated[i]); c.Status.NominatedNodeName != "" {
				sh.try(func(s *scenario.Scenario) { s.Nominated[i] = c })
			}
		}
	}
}

// nodeCuts each take something out of a node.
var nodeCuts = []func(n *v1.Node){
	func(n *v1.Node) { n.Spec.Taints = nil },
	func(n *v1.Node) { n.Spec.Unschedulable = false },
	func(n *v1.Node) { n.Status.Images = nil },
	func(n *v1.Node) { n.Labels = nil },
	func(n *v1.Node) { n.Status.Capacity = nil },
	func(n *v1.Node) { delete(n.Status.Allocatable, v1.ResourceEphemeralStorage) },
	func(n *v1.Node) { delete(n.Status.Allocatable, v1.ResourceCPU) },
	func(n *v1.Node) { delete(n.Status.Allocatable, v1.ResourceMemory) },
	func(n *v1.Node) { delete(n.Status.Allocatable, "hugepages-2Mi") },
	func(n *v1.Node) { delete(n.Status.Allocatable, "hugepages-1Gi") },
}

func (sh *shrinker) nodes() {
	for _, cut := range nodeCuts {
		for i := range sh.best.Nodes {
			sh.try(func(s *scenario.Scenario) {
				s.Nodes[i] = s.Nodes[i].DeepCopy()
				cut(s.Nodes[i])
			})
		}
	}
}

// profile drops arguments, and plugins as long as the profile still starts.
func (sh *shrinker) profile() {
	sh.try(func(s *scenario.Scenario) { s.Profile.NodeAffinity = nil })
	sh.try(func(s *scenario.Scenario) { s.Profile.Fit = nil })
	sh.try(func(s *scenario.Scenario) { s.Profile.Balanced = nil })
	sh.try(func(s *scenario.Scenario) { s.Profile.Spread = nil })
	sh.try(func(s *scenario.Scenario) { s.Profile.PodAffinity = nil })
	sh.try(func(s *scenario.Scenario) { s.Profile.NoFilter, s.Profile.NoScore = nil, nil })
	dropFrom(sh, func(s *scenario.Scenario) *[]scenario.Plugin { return &s.Profile.Plugins })
}
