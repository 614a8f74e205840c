// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"errors"
	"fmt"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// replans bounds how often a plan is made anew after the scheduler has refused a move.
const replans = 50

// ErrNoPlan is returned if the goal is not reached.
var ErrNoPlan = errors.New("no plan was found")

// Find returns a plan that was simulated. With ErrNoPlan, the Plan says how far it got.
func (p *Problem) Find() (Plan, error) {
	var plan Plan
	m := newModel(p, &plan)
	plan.Now = m.total() / p.Size
	if plan.Goal = p.Count; plan.Goal == 0 {
		plan.Goal = plan.Now + 1
	}
	for range replans {
		steps, err := p.attempt(&plan, m)
		if err != nil {
			return plan, err
		}
		refused, err := p.simulate(&plan, m, steps)
		if err != nil {
			return plan, err
		}
		if refused == nil {
			return plan, nil
		}
		at := m.pods[refused.pod]
		plan.Refused = append(plan.Refused, Move{at.record.Ref(), m.nodes[refused.from].name, m.nodes[refused.to].name})
		m.fits.refused[refusal{at.record.Spec, refused.to}] = true
	}
	return plan, fmt.Errorf("%w: the scheduler refuses moves of %d plans", ErrNoPlan, replans)
}

// attempt makes a plan, and leaves the model as it was.
func (p *Problem) attempt(plan *Plan, m *model) ([]step, error) {
	slots := plan.Goal * p.Size
	plan.AtLeast = m.atLeast(slots-m.total(), p.MaxMoves)
	plan.After = plan.Now
	plan.Moves = nil
	if plan.AtLeast > p.MaxMoves {
		return nil, fmt.Errorf("%w: %d moves cannot make enough capacity free, whatever is moved", ErrNoPlan,
			p.MaxMoves)
	}
	steps := m.greedy(slots, p.MaxMoves)
	reached := m.total()
	undo(m, steps)
	known := p.MaxMoves + 1
	if reached >= slots {
		known = len(steps)
	}
	better, atLeast := m.exact(slots, plan.AtLeast, known)
	if better != nil {
		reached = m.total()
		undo(m, better)
		steps = better
	}
	plan.AtLeast = atLeast
	if reached < slots {
		plan.After = reached / p.Size
		return nil, fmt.Errorf("%w with at most %d moves", ErrNoPlan, p.MaxMoves)
	}
	plan.After = reached / p.Size
	for _, s := range steps {
		plan.Moves = append(plan.Moves, Move{m.pods[s.pod].record.Ref(), m.nodes[s.from].name, m.nodes[s.to].name})
	}
	return steps, nil
}

func undo(m *model, steps []step) {
	for i := len(steps) - 1; i >= 0; i-- {
		m.move(steps[i].pod, steps[i].from)
	}
}

// simulate carries out a plan in a simulated cluster: each pod is deleted and created again, and the scheduler has to
// accept its target; then the gangs are created and must all be placed. It returns the first move that the scheduler
// refuses, nil for none.
func (p *Problem) simulate(plan *Plan, m *model, steps []step) (refused *step, err error) {
	w := world(p)
	now := map[cluster.UID]*sim.Pod{} // pod -> as it is now
	for _, rec := range p.Pods {
		if w.Node(rec.NodeName) != nil {
			now[rec.UID] = w.Create(w.TemplateOf(rec), sim.NewPod{Name: rec.Name, UID: rec.UID, Node: rec.NodeName})
		}
	}
	w.Start()
	for i, s := range steps {
		rec := m.pods[s.pod].record
		w.Vanish(now[rec.UID], sim.Drained)
		now[rec.UID] = pinned(w, rec, fmt.Sprintf("%s-moved-%d", rec.Name, i), m.nodes[s.to].name)
		if !settle(w, now[rec.UID]) {
			return &steps[i], nil
		}
	}
	var members []*sim.Pod
	for g := range plan.Goal {
		name := fmt.Sprintf("defrag-gang-%d", g)
		mark := &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: p.Unit.Namespace,
			Name: name}, Size: p.Size}
		if p.Size == 1 {
			mark = nil
		}
		template := w.TemplateOf(p.Unit)
		for i := range p.Size {
			member := fmt.Sprintf("%s-%d", name, i)
			one := sim.NewPod{Name: member, UID: cluster.UID(member), Gang: mark}
			members = append(members, w.Create(template, one))
		}
	}
	w.Run(sim.Limits{Until: w.Now() + time.Hour, Done: func() bool { return w.Pending() == 0 }, WhenQuiet: true})
	for _, one := range members {
		if w.Pod(one.Record.UID) == nil || one.Record.NodeName == "" {
			return nil, fmt.Errorf("%w: after the moves, the scheduler does not place pod %s in the simulation",
				ErrNoPlan, one.Record.Name)
		}
	}
	for _, rec := range p.Pods {
		if one := now[rec.UID]; one != nil && w.Pod(one.Record.UID) == nil {
			return nil, fmt.Errorf("%w: the scheduler evicts pod %s in the simulation", ErrNoPlan, rec.Key())
		}
	}
	return nil, nil
}
