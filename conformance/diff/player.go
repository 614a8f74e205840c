// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// player asks both subjects the questions of one scenario.
type player struct {
	s       *scenario.Scenario
	up, our Cluster // our is nil when only upstream is asked
	// last pod and upstream's first best node for it; "" when it has none.
	last *v1.Pod
	on   string
	// nominated at present.
	nominated []*v1.Pod
	objects   map[scenario.ObjectRef]scenario.APIObject // object -> its version at present
}

// errRefused marks a profile that upstream does not take: no case to compare.
var errRefused = errors.New("upstream refuses the scenario")

func load(upstream, ours Subject, s *scenario.Scenario) (*player, error) {
	p := &player{s: s, nominated: s.Nominated, objects: make(map[scenario.ObjectRef]scenario.APIObject, len(s.Objects))}
	for _, o := range s.Objects {
		p.objects[o.Key()] = o.APIObject
	}
	var err error
	if p.up, err = upstream.Load(s); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if ours == nil {
		return p, nil
	}
	if p.our, err = ours.Load(s); err != nil {
		p.up.Close()
		return nil, fmt.Errorf("kumiki refuses what upstream takes: %w", err)
	}
	return p, nil
}

func (p *player) close() {
	p.up.Close()
	if p.our != nil {
		p.our.Close()
	}
}

func (p *player) both(f func(c Cluster)) {
	f(p.up)
	if p.our != nil {
		f(p.our)
	}
}

// ask changes the clusters, asks, and returns upstream's answer with the
// difference it shows, "" for none. covered counts cases under an exception.
func (p *player) ask(a *scenario.Ask, covered map[string]int) (*outcome.Outcome, string) {
	if a.PlacePrevious && p.on != "" {
		bound := gen.Bind(p.last, p.on)
		p.both(func(c Cluster) { c.Bind(bound) })
	}
	for _, n := range a.SetNodes {
		p.both(func(c Cluster) { c.SetNode(n) })
	}
	for _, name := range a.DeleteNodes {
		p.both(func(c Cluster) { c.DeleteNode(name) })
	}
	for _, o := range a.SetObjects {
		p.objects[o.Key()] = o.APIObject
		p.both(func(c Cluster) { c.SetObject(o.APIObject) })
	}
	for _, ref := range a.DeleteObjects {
		delete(p.objects, ref)
		p.both(func(c Cluster) { c.DeleteObject(ref) })
	}
	if a.DropNominated || len(a.Nominate) > 0 {
		if a.DropNominated {
			p.nominated = nil
		}
		p.nominated = append(p.nominated[:len(p.nominated):len(p.nominated)], a.Nominate...)
		p.both(func(c Cluster) { c.SetNominated(p.nominated) })
	}
	want := p.up.Decide(a.Pod)
	p.last, p.on = a.Pod, ""
	// A pod whose amounts upstream misreads must not take capacity: every later case would
	// differ for the same reason.
	if len(want.Best) > 0 && exception(p.s, a.Pod) == nil {
		p.on = want.Names[want.Best[0]]
	}
	if p.our == nil {
		return want, ""
	}
	return want, judge(p.s, a.Pod, want, p.our.Decide(a.Pod), covered)
}

// judge compares, allowing for the exceptions.
func judge(s *scenario.Scenario, pod *v1.Pod, want, got *outcome.Outcome, covered map[string]int) string {
	e := exception(s, pod)
	if e == nil {
		return Compare(want, got)
	}
	covered[e.Name]++
	if !e.Holds(s, want, got, pod) {
		return fmt.Sprintf("exception %q does not hold: kumiki finds %d feasible nodes", e.Name, len(got.Feasible))
	}
	return ""
}

// Replay asks all questions of a scenario and returns the first difference with
// the number of the ask, or "". A scenario that upstream refuses shows nothing.
func Replay(upstream, ours Subject, s *scenario.Scenario) string {
	d, err := replay(upstream, ours, s)
	if err != nil && !errors.Is(err, errRefused) {
		return err.Error()
	}
	return d
}

func replay(upstream, ours Subject, s *scenario.Scenario) (string, error) {
	p, err := load(upstream, ours, s)
	if err != nil {
		return "", err
	}
	defer p.close()
	covered := map[string]int{} // exception -> cases; not of interest here
	for i := range s.Asks {
		if _, d := p.ask(&s.Asks[i], covered); d != "" {
			return fmt.Sprintf("ask %d: %s", i, d), nil
		}
	}
	return "", nil
}
