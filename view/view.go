// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// Explainer is the part of question.Inspector that view uses.
type Explainer interface {
	// ExplainPod reports on a pod.
	ExplainPod(namespace, name string) (record.PodReport, bool)
	// ExplainNode reports on a node.
	ExplainNode(name string) (record.NodeReport, bool)
	// ExplainGang reports on a gang.
	ExplainGang(namespace, name string) (record.GangReport, bool)
	// QueueReport reports on everything that waits.
	QueueReport() record.QueueReport
	// GangList reports on all gangs.
	GangList() record.GangList
	// WhatIfPod and WhatIfGang answer what would happen to a pod or a gang under conditions. The error is a
	// *record.Refusal if the question is invalid.
	WhatIfPod(namespace, name string, conditions []string) (record.WhatIf, error)
	WhatIfGang(namespace, name string, conditions []string) (record.WhatIf, error)
	// OtherNamespace returns a namespace other than the given one that conditions name an object of; empty for none.
	OtherNamespace(namespace string, conditions []string) string
}

// Asker runs f on the goroutine that owns the engine, between two steps, and returns when f has run. f must not keep
// the Explainer.
type Asker interface {
	Ask(ctx context.Context, f func(Explainer)) error
}

// AskFunc is a function that implements Asker.
type AskFunc func(ctx context.Context, f func(Explainer)) error

// Ask calls the function.
func (a AskFunc) Ask(ctx context.Context, f func(Explainer)) error { return a(ctx, f) }

// How much of the past is kept by default. A move takes about 200 bytes, a decision about 1 KiB.
const (
	DefaultMoves     = 16384
	DefaultDecisions = 8192
)

// movesOfPod is the maximum number of moves in a PodReport.
const movesOfPod = 16

// Options make a View.
type Options struct {
	Asker Asker
	// Paused returns the pause of the scheduler, nil while there is none; a nil function means that there is never
	// one.
	Paused func() *record.Pause
	// Timing returns where the time of pods went; nil for a scheduler that does not record it.
	Timing func(timing.Query) record.Timing
	// Moves and Decisions bound the past; the defaults above when 0.
	Moves, Decisions int
}

// View answers questions and keeps the newest moves and decisions. Moved and Decided may be called from one goroutine
// while any number asks.
type View struct {
	asker  Asker
	paused func() *record.Pause
	timing func(timing.Query) record.Timing // nil for none
	narrow narrowGate
	// epoch identifies this process, because the numbers of moves start again with each.
	epoch string
	// keepAlive is the period of empty lines in a stream of moves; tests shorten it.
	keepAlive time.Duration

	mu struct {
		sync.Mutex
		moves     ring[record.QueueMove]
		decisions ring[record.Decision]
		lastOf    map[string]uint64 // pod UID -> number of its newest decision in the ring
		// pod UID -> number of the newest decision in the ring by which pods were evicted for it
		evictedBy map[string]uint64
		watchers  map[chan struct{}]struct{} // one slot each: "there is something new" -> nothing
	}
}

// New returns a View without a past.
func New(o Options) *View {
	if o.Moves == 0 {
		o.Moves = DefaultMoves
	}
	if o.Decisions == 0 {
		o.Decisions = DefaultDecisions
	}
	var id [8]byte
	rand.Read(id[:]) // never fails
	if o.Paused == nil {
		o.Paused = func() *record.Pause { return nil }
	}
	v := &View{asker: o.Asker, paused: o.Paused, timing: o.Timing, narrow: newNarrowGate(),
		epoch: hex.EncodeToString(id[:]), keepAlive: keepAlive}
	v.mu.moves = newRing[record.QueueMove](o.Moves)
	v.mu.decisions = newRing[record.Decision](o.Decisions)
	v.mu.lastOf, v.mu.evictedBy = map[string]uint64{}, map[string]uint64{}
	v.mu.watchers = map[chan struct{}]struct{}{}
	return v
}

// Moved records a move. It does not block.
func (v *View) Moved(m record.QueueMove) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mu.moves.add(m)
	for w := range v.mu.watchers {
		select {
		case w <- struct{}{}:
		default: // it has not read the last notice yet
		}
	}
}

// Decided records a decision. It copies what it keeps and does not block.
func (v *View) Decided(d record.Decision) {
	d = d.Clone()
	v.mu.Lock()
	defer v.mu.Unlock()
	number, fell := v.mu.decisions.add(d)
	for _, of := range []map[string]uint64{v.mu.lastOf, v.mu.evictedBy} {
		if old := fell.Pod.UID; old != "" && of[old] < v.mu.decisions.first() {
			delete(of, old)
		}
	}
	v.mu.lastOf[d.Pod.UID] = number
	if d.Preemption.Evicts() {
		v.mu.evictedBy[d.Pod.UID] = number
	}
}

// evictedLocked returns the newest decision by which pods were evicted for one of some pods, except the one with a
// number; nil for none.
func (v *View) evictedLocked(but uint64, uids ...string) *record.Decision {
	var newest uint64
	for _, uid := range uids {
		newest = max(newest, v.mu.evictedBy[uid])
	}
	if newest == 0 || newest == but {
		return nil
	}
	d := v.mu.decisions.at(newest)
	return &d
}

// Pod reports on a pod, with what the rings know of its past.
func (v *View) Pod(ctx context.Context, namespace, name string) (report record.PodReport, found bool, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) { report, found = e.ExplainPod(namespace, name) })
	if err != nil || !found {
		return record.PodReport{}, false, err
	}
	if report.Node == "" {
		report.Paused = v.paused()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if number, ok := v.mu.lastOf[report.Pod.UID]; ok && report.Last == nil {
		d := v.mu.decisions.at(number)
		report.Last, report.Evicted = &d, v.evictedLocked(number, report.Pod.UID)
	}
	if report.Moves == nil {
		report.Moves = v.movesOfLocked(report.Pod.UID)
	}
	return report, true, nil
}

// movesOfLocked returns the newest moves of a pod, oldest first.
func (v *View) movesOfLocked(uid string) []record.QueueMove {
	var out []record.QueueMove
	first := v.mu.moves.first()
	for n := v.mu.moves.last; n >= first && len(out) < movesOfPod; n-- {
		if m := v.mu.moves.at(n); m.Pod.UID == uid {
			out = append(out, m)
		}
	}
	slices.Reverse(out)
	return out
}

// Node reports on a node.
func (v *View) Node(ctx context.Context, name string) (report record.NodeReport, found bool, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) { report, found = e.ExplainNode(name) })
	return report, found, err
}

// Gang reports on a gang.
func (v *View) Gang(ctx context.Context, namespace, name string) (report record.GangReport, found bool, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) { report, found = e.ExplainGang(namespace, name) })
	if err != nil || !found || report.Last != nil {
		return report, found, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var newest uint64
	var uids []string
	for _, p := range report.Pods {
		newest, uids = max(newest, v.mu.lastOf[p.Pod.UID]), append(uids, p.Pod.UID)
	}
	if newest > 0 {
		d := v.mu.decisions.at(newest)
		report.Last, report.Evicted = &d, v.evictedLocked(newest, uids...)
	}
	return report, found, err
}

// WhatIf answers what would happen to a pod, or with gang set a gang, under conditions. unanswered is why there is no
// answer, err why the scheduler gave none.
func (v *View) WhatIf(ctx context.Context, gang bool, namespace, name string,
	conditions []string) (report record.WhatIf, unanswered, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) {
		if gang {
			report, unanswered = e.WhatIfGang(namespace, name, conditions)
		} else {
			report, unanswered = e.WhatIfPod(namespace, name, conditions)
		}
	})
	return report, unanswered, err
}

// Queue reports on everything that waits.
func (v *View) Queue(ctx context.Context) (report record.QueueReport, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) {
		report = e.QueueReport()
		for i := range report.Entries { // the engine goes on with its own
			report.Entries[i].Plugins = slices.Clone(report.Entries[i].Plugins)
		}
	})
	report.Paused = v.paused()
	return report, err
}

// Gangs reports on all gangs, with why the last attempt at each waiting one failed.
func (v *View) Gangs(ctx context.Context) (list record.GangList, err error) {
	err = v.asker.Ask(ctx, func(e Explainer) { list = e.GangList() })
	list.Paused = v.paused()
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range list.Gangs {
		e := &list.Gangs[i]
		if e.Pod == nil {
			continue
		}
		if number, ok := v.mu.lastOf[e.Pod.UID]; ok {
			if part := v.mu.decisions.at(number).Gang; part != nil {
				e.Verdict = cmp.Or(part.Proof, part.Verdict)
			}
		}
	}
	return list, err
}

// Decisions lists the newest decisions, newest first: of one pod when key (namespace/name or UID) is not empty.
func (v *View) Decisions(key string, limit int) []record.Decision {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := []record.Decision{}
	first := v.mu.decisions.first()
	for n := v.mu.decisions.last; n >= first && len(out) < limit; n-- {
		d := v.mu.decisions.at(n)
		if key == "" || d.Pod.UID == key || d.Pod.Key() == key {
			out = append(out, d)
		}
	}
	return out
}
