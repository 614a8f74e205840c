// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// looks are the times of the later checks of a dispute. The last check decides. It is later than the longest backoff
// of a scheduler with default settings, so that an event which makes a pod fit has had its effect on both sides.
var looks = []record.Time{record.Second / 10, record.Second / 2, record.Second, 3 * record.Second, 6 * record.Second,
	12 * record.Second}

const (
	// maxDoubts bounds the disputes that are open at once.
	maxDoubts = 1024
	// nodeSettles is the maximum time between the observations of a node's change by the two schedulers.
	nodeSettles = 2 * record.Second
)

// doubt is a dispute that is not settled.
type doubt struct {
	kind  record.ShadowKind
	uid   cluster.UID
	first record.Judgement
	quiet bool
	since record.Time
	looks int // number of later checks so far
	said  cluster.Condition
}

// reject opens a dispute about a node that kumiki's filters reject.
func (s *Shadow) reject(j record.Judgement, quiet bool) {
	if at, known := s.changed[j.Theirs.Node]; known && s.Now()-at < nodeSettles {
		s.rejected.settled++ // the other scheduler may have decided before the change
		return
	}
	s.open(&doubt{kind: record.ShadowRejected, uid: cluster.UID(j.Pod.UID), first: j, quiet: quiet})
}

// refuse opens a dispute about a pod that the other scheduler reports as unschedulable, if a node fits for kumiki.
func (s *Shadow) refuse(p *cluster.Pod, w *waiting) {
	if i := s.findDoubt(p.UID); i >= 0 {
		s.doubts[i].said = p.Condition // the other scheduler has tried again with the same result
		return
	}
	if w.disputed {
		return
	}
	j, known := s.judge(p.UID, "")
	if known && j.Feasible > 0 {
		w.disputed = true
		s.open(&doubt{kind: record.ShadowRefused, uid: p.UID, first: j, said: p.Condition})
	}
}

func (s *Shadow) findDoubt(uid cluster.UID) int {
	return slices.IndexFunc(s.doubts, func(d *doubt) bool { return d.uid == uid })
}

func (s *Shadow) of(d *doubt) *dispute {
	if d.kind == record.ShadowRejected {
		return &s.rejected
	}
	return &s.refused
}

func (s *Shadow) open(d *doubt) {
	if len(s.doubts) == maxDoubts {
		s.of(d).lost++
		return
	}
	d.since = s.Now()
	s.doubts = append(s.doubts, d)
}

// lose ends the dispute about a pod that is gone: it cannot be checked again.
func (s *Shadow) lose(uid cluster.UID) {
	if i := s.findDoubt(uid); i >= 0 {
		s.of(s.doubts[i]).lost++
		s.doubts = slices.Delete(s.doubts, i, i+1)
	}
}

// recheckDisputes checks the disputes whose time has come.
func (s *Shadow) recheckDisputes() {
	s.doubts = slices.DeleteFunc(s.doubts, func(d *doubt) bool {
		due := false
		for d.looks < len(looks) && s.Now() >= d.since+looks[d.looks] {
			d.looks++
			due = true
		}
		switch {
		case !due:
			return false
		case s.settled(d):
			s.of(d).settled++
			return true
		case d.looks < len(looks):
			return false
		}
		s.confirm(d)
		return true
	})
}

// settled reports whether both schedulers agree by now.
func (s *Shadow) settled(d *doubt) bool {
	if d.kind == record.ShadowRejected {
		j, known := s.judge(d.uid, d.first.Theirs.Node)
		return !known || j.Match != record.Rejected
	}
	w := s.waiting[d.uid]
	if w.condition.Reason != engine.ReasonUnschedulable {
		return true // tried again with another result
	}
	j, known := s.judge(d.uid, "")
	return !known || j.Feasible == 0
}

// confirm counts a dispute that has persisted.
func (s *Shadow) confirm(d *doubt) {
	of := s.of(d)
	of.pods++
	if d.kind == record.ShadowRejected {
		s.count(d.first, d.quiet)
		if d.first.Feasible == 0 {
			of.nowhere++
		}
		of.blame(&d.first)
	}
	s.show(record.ShadowExample{Kind: d.kind, Quiet: d.quiet, Judgement: d.first, TheirMessage: d.said.Message})
}
