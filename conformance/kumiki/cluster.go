// SPDX-License-Identifier: Apache-2.0

package kumiki

import (
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/diff"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
)

// Subject answers with kumiki's search.
type Subject struct {
	// Hosting is which plugins are hosted.
	Hosting Hosting
	// Placed is called after each decision, before it is checked; it may be nil.
	Placed func()
}

// Load implements diff.Subject.
func (sub Subject) Load(s *scenario.Scenario) (diff.Cluster, error) {
	config, _, err := sub.Hosting.Config(&s.Profile)
	if err != nil {
		return nil, err
	}
	profile := config.Profiles[0]
	c := &searched{
		placed:  sub.Placed,
		store:   cluster.NewStore(),
		intake:  convert.NewIntake(),
		profile: profile,
		placer: place.New(place.Profile{Filters: profile.Filters, Scorers: profile.Scorers}, engine.NoMeter{},
			place.DefaultClassBytes),
		names: make([]string, 0, len(s.Nodes)),
	}
	if len(sub.Hosting.Plugins) > 0 {
		c.intake.KeepFull()
	}
	for _, o := range s.Objects {
		c.SetObject(o.APIObject)
	}
	for _, n := range s.Nodes {
		c.SetNode(n)
	}
	for _, p := range s.Bound {
		c.Bind(p)
	}
	c.nominations = newNominations(c.intake, s.Nominated)
	return c, nil
}

// searched is one cluster with one Placer, kept from pod to pod as the engine
// keeps it, so that its classes are put to the test too.
type searched struct {
	store       *cluster.Store
	intake      *convert.Intake
	profile     engine.Profile
	placer      *place.Placer
	nominations *nominations
	names       []string // of the nodes, sorted
	placed      func()   // see Subject
}

func (c *searched) Close() {}

func (c *searched) change(f func()) {
	c.store.Begin()
	f()
	c.store.Commit()
}

func (c *searched) SetNode(n *v1.Node) {
	c.change(func() { c.store.SetNode(c.intake.Node(n)) })
	if i, found := slices.BinarySearch(c.names, n.Name); !found {
		c.names = slices.Insert(slices.Clone(c.names), i, n.Name)
	}
}

func (c *searched) DeleteNode(name string) {
	i, found := slices.BinarySearch(c.names, name)
	if !found {
		return
	}
	c.change(func() { c.store.DeleteNode(name) })
	c.names = slices.Delete(slices.Clone(c.names), i, i+1)
}

func (c *searched) Bind(p *v1.Pod) {
	c.change(func() { c.store.SetPod(c.intake.Pod(p)) })
}

// SetObject implements diff.Cluster.
func (c *searched) SetObject(o scenario.APIObject) {
	c.change(func() { c.store.SetObject(intake.Trim(o)) })
}

// DeleteObject implements diff.Cluster.
func (c *searched) DeleteObject(ref scenario.ObjectRef) {
	c.change(func() {
		c.store.DeleteObject(cluster.Kind(ref.Kind), cluster.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
	})
}

// SetNominated implements diff.Cluster.
func (c *searched) SetNominated(pods []*v1.Pod) { c.nominations = newNominations(c.intake, pods) }

// Decide implements diff.Cluster.
func (c *searched) Decide(pod *v1.Pod) *outcome.Outcome {
	p := c.intake.PendingPod(pod)
	for _, g := range c.profile.Gates {
		if reason, ok := g.Gated(c.store.Snapshot(), p); !ok {
			return &outcome.Outcome{Gate: &outcome.Verdict{Code: outcome.Unresolvable, Plugin: g.Name(), Reasons: []string{reason}}}
		}
	}
	a := answer{c: c, s: c.store.Snapshot(), pod: p, out: &outcome.Outcome{}}
	a.place = c.placer.Place(a.s, p, c.nominations, func(int) int { return 0 })
	if c.placed != nil {
		c.placed()
	}
	a.read()
	return a.out
}

// answer turns a place.Outcome into an outcome.Outcome.
type answer struct {
	c     *searched
	s     cluster.Snapshot
	pod   *cluster.Pod
	place place.Outcome
	out   *outcome.Outcome
}

func (a *answer) read() {
	fitsNowhere := a.place.Node == cluster.NoNode && a.place.Err == nil
	var why place.Rejection
	if fitsNowhere {
		why = a.c.placer.Why(a.s, a.place)
		a.out.Message, a.out.Rejectors = why.Message, why.Plugins
	}
	if why.PreFilter != "" {
		a.out.PreFilter = &outcome.Verdict{Code: outcome.Unresolvable, Reasons: []string{why.PreFilter}}
		if len(why.Plugins) == 1 { // a rejection that several plugins make together names none
			a.out.PreFilter.Plugin = why.Plugins[0]
		}
		if why.Resolvable {
			a.out.PreFilter.Code = outcome.Unschedulable
			a.out.PreFilter.Plugin, _ = a.c.placer.WhyNot(a.s, a.place, 0)
		}
		return
	}
	if a.place.Err != nil && a.place.Feasible == 0 {
		a.out.PreFilter, a.out.Message = &outcome.Verdict{Code: outcome.Failed}, a.place.Err.Error()
		return
	}
	if len(a.c.names) == 0 {
		return
	}
	a.out.Names = a.c.names
	if row, ok := a.s.Find(a.pod.Nominated); ok && a.place.Feasible == 1 && a.place.Node == row {
		i, _ := slices.BinarySearch(a.c.names, a.pod.Nominated)
		a.out.Feasible = []int{i}
		a.out.PickBest()
		return
	}
	a.verdicts()
	if a.place.Err != nil {
		a.out.Message = a.place.Err.Error()
		return
	}
	a.scores()
}

func (a *answer) verdicts() {
	a.out.Nodes = make([]outcome.Verdict, len(a.c.names))
	for i, name := range a.c.names {
		row, ok := a.s.Find(name)
		if !ok {
			panic(fmt.Sprintf("node %s was set and is not in the store", name))
		}
		v := a.place.Verdict(row)
		if v == plugin.Fits {
			a.out.Feasible = append(a.out.Feasible, i)
			continue
		}
		a.out.Nodes[i] = a.verdict(v)
	}
}

func (a *answer) verdict(v plugin.Verdict) outcome.Verdict {
	out := outcome.Verdict{Code: outcome.Unschedulable}
	if v == plugin.Excluded {
		// The text of an exclusion is compared in the message.
		return outcome.Verdict{Code: outcome.Unresolvable}
	}
	out.Plugin, out.Reasons = a.c.placer.ReasonsOf(a.place, v)
	out.Reasons = slices.Clone(out.Reasons)
	sort.Strings(out.Reasons)
	switch {
	case a.c.placer.Pending(a.place, v):
		out.Code = outcome.Pending
	case v.Code()&plugin.Unresolvable != 0:
		out.Code = outcome.Unresolvable
	}
	return out
}

func (a *answer) scores() {
	switch len(a.out.Feasible) {
	case 0:
		return
	case 1:
		a.out.PickBest()
	default:
		a.out.Total = make([]int64, len(a.out.Feasible))
		for k, i := range a.out.Feasible {
			a.addScores(k, a.row(i))
			if len(a.c.profile.Scorers) == 0 {
				a.out.Total[k] = 1 // what upstream gives a node that no plugin scores
			}
		}
		a.out.PickBest()
	}
	a.checkChoice()
}

func (a *answer) row(i int) cluster.NodeIdx {
	row, _ := a.s.Find(a.c.names[i])
	return row
}

func (a *answer) addScores(k int, row cluster.NodeIdx) {
	for j, ps := range a.c.placer.Scores(a.place, row) {
		if k == 0 {
			n := len(a.out.Feasible)
			a.out.Scores = append(a.out.Scores, outcome.Scores{Plugin: ps.Plugin, Raw: make([]int64, n), Weighted: make([]int64, n)})
		}
		a.out.Scores[j].Raw[k], a.out.Scores[j].Weighted[k] = ps.Raw, ps.Weighted
		a.out.Total[k] += ps.Weighted
	}
}

// checkChoice holds the search's own choice against the totals: the count of
// ties, the best total, and the node each draw leads to. Where they disagree, the
// choice is reported, so that the difference shows.
func (a *answer) checkChoice() {
	rows := make([]cluster.NodeIdx, len(a.out.Best))
	for k, i := range a.out.Best {
		rows[k] = a.row(i)
	}
	slices.Sort(rows)
	if a.place.Node != rows[0] || a.place.Tied != len(rows) || a.place.Feasible != len(a.out.Feasible) {
		a.out.Message = fmt.Sprintf("kumiki chose row %d of %d tied and %d feasible, its scores say row %d of %d and %d",
			a.place.Node, a.place.Tied, a.place.Feasible, rows[0], len(rows), len(a.out.Feasible))
		return
	}
	if len(rows) < 2 {
		return
	}
	last := len(rows) - 1
	if got := a.c.placer.Place(a.s, a.pod, a.c.nominations, func(int) int { return last }); got.Node != rows[last] {
		a.out.Message = fmt.Sprintf("draw %d of %d led to row %d, not %d", last, len(rows), got.Node, rows[last])
	}
}

// nominations is a fixed list of nominated pods.
type nominations struct {
	nodes []string                  // sorted
	on    map[string][]*cluster.Pod // node name -> pods, in scenario order
}

var _ place.Nominations = (*nominations)(nil)

func newNominations(in *convert.Intake, pods []*v1.Pod) *nominations {
	n := &nominations{on: map[string][]*cluster.Pod{}}
	for _, p := range pods {
		n.on[p.Status.NominatedNodeName] = append(n.on[p.Status.NominatedNodeName], in.Pod(p))
	}
	for name := range n.on { // order: sorted below
		n.nodes = append(n.nodes, name)
	}
	sort.Strings(n.nodes)
	return n
}

func (n *nominations) NominatedNodes() []string               { return n.nodes }
func (n *nominations) NominatedOn(node string) []*cluster.Pod { return n.on[node] }
