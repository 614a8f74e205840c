// SPDX-License-Identifier: Apache-2.0

package timing

import "github.com/kumiki-scheduler/kumiki/record"

// gang is a gang with pods on their way.
type gang struct {
	record.GangTiming
	members []*journey // on their way, in no order
	// queued: a unit of the gang is in the queue, in phase, which plugins keep it in.
	queued  bool
	phase   record.Phase
	plugins name
	// quorum is the minimum number of pods as last decided, 0 before; bound counts those that the watch has shown
	// bound, with those that had a node before the decision.
	quorum, bound int
}

func (j *journey) gangName() string {
	if j.gang == nil {
		return ""
	}
	return j.gang.Gang
}

func (r *Recorder) joinGang(j *journey, name string) {
	if name == "" {
		return
	}
	g := r.gangs[name]
	if g == nil {
		g = &gang{GangTiming: record.GangTiming{Gang: name, FirstMember: j.began}}
		r.gangs[name] = g
	}
	g.FirstMember = min(g.FirstMember, j.began)
	j.gang, j.gangAt = g, len(g.members)
	g.members = append(g.members, j)
}

// leaveGang takes a pod out of its gang. A gang without pods on their way is over.
func (r *Recorder) leaveGang(j *journey) {
	g := j.gang
	if g == nil {
		return
	}
	last := g.members[len(g.members)-1]
	g.members[j.gangAt], last.gangAt = last, j.gangAt
	g.members[len(g.members)-1] = nil
	g.members = g.members[:len(g.members)-1]
	j.gang = nil
	if len(g.members) == 0 {
		delete(r.gangs, g.Gang)
		r.endedGangs.add(g.GangTiming)
	}
}

// movedGang applies a move of a gang's unit to its pods that wait. Those that are decided are not part of the unit.
func (r *Recorder) movedGang(m *record.QueueMove, at record.Time) {
	g := r.gangs[m.Gang]
	if g == nil {
		return
	}
	event, hint := r.names.number(m.Event), r.names.number(m.Hint)
	g.phase, g.queued = queuePhase(m.To)
	switch m.To {
	case record.Active:
		if g.Quorum == 0 {
			g.Quorum = max(at, g.FirstMember)
		}
		g.plugins = 0
	case record.Gated:
		g.plugins = hint
	}
	for _, j := range g.members {
		if j.place == queued || j.place == nowhere {
			r.move(j, m.To, at, event, hint)
		}
	}
}

// blame notes which plugins rejected a gang.
func (g *gang) blame(by name) {
	g.plugins = by
	for _, j := range g.members {
		j.blame(by)
	}
}

// placed notes a decision for nodes.
func (g *gang) placed(part *record.GangPart, at record.Time) {
	if g.Placed == 0 {
		g.Placed, g.bound = at, part.Held
		if g.Quorum == 0 {
			g.Quorum = at
		}
	}
	g.quorum = part.Quorum
}

// boundAt notes that the watch showed a pod bound.
func (g *gang) boundAt(at record.Time) {
	at = max(at, g.FirstMember, g.Quorum, g.Placed, g.FirstBound)
	if g.FirstBound == 0 {
		g.FirstBound = at
	}
	g.bound++
	if g.quorum > 0 && g.bound >= g.quorum && g.Whole == 0 {
		g.Whole = at
	}
}
