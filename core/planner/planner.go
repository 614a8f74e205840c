// SPDX-License-Identifier: Apache-2.0

// Package planner owns what a planner knows of its arbiter: the session, how far it has the log, and the proposals
// that were not answered yet. What it decides, and what it assumes meanwhile, is the engine's.
//
// A planner's store at a position of the log is the arbiter's at that position, besides what the planner assumes for
// its own open proposals. An answer comes behind the entries that follow from it. So the log has converted what was
// assumed for a taken proposal when its answer comes, and a refused unit is decided anew on a store that has the entry
// for which it was refused.
package planner

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Planner is the planner's side of a session. It belongs to the engine's goroutine.
type Planner struct {
	emit    func(message.Effect)
	reader  *replica.Reader
	entries []replica.Entry // read, and not taken yet

	me       shard.Ordinal
	epoch    shard.Epoch
	session  shard.Session // 0 for none
	sequence shard.Sequence
	open     map[shard.Sequence]Open // proposal -> what it is about
	// broken is set after an error: the store does not follow the log any more.
	broken bool
}

// Open is a proposal that was not answered yet.
type Open struct {
	Gang cluster.GangKey // zero for a pod by itself
	Pods []cluster.UID
}

// New returns a planner without a session. reader is at the position of the engine's store.
func New(reader *replica.Reader, emit func(message.Effect)) *Planner {
	return &Planner{emit: emit, reader: reader, open: map[shard.Sequence]Open{}}
}

// Welcome starts a session.
func (p *Planner) Welcome(ev message.Welcomed) {
	p.me, p.epoch, p.session, p.sequence = ev.Ordinal, ev.Epoch, ev.Session, 0
	clear(p.open)
}

// Read reads a frame of the log. Its entries are to be applied next, see Take.
func (p *Planner) Read(frame []byte) {
	if p.broken {
		return
	}
	err := p.reader.Read(frame, func(e replica.Entry) error {
		p.entries = append(p.entries, e)
		return nil
	})
	if err != nil {
		p.Break(err.Error())
	}
}

// Take returns the entries that were read since the last call.
func (p *Planner) Take() []replica.Entry {
	taken := p.entries
	p.entries = nil
	return taken
}

// Break ends the session, because the store does not follow the log any more.
func (p *Planner) Break(why string) {
	if !p.broken {
		p.emit(message.Rejoin{Why: fmt.Sprintf("after entry %d: %s", p.reader.Last, why)})
	}
	p.broken, p.entries = true, nil
}

// Propose proposes a placement of a unit.
func (p *Planner) Propose(unit string, gang cluster.GangKey, priority int32, on []shard.Placement) {
	p.sequence++
	o := Open{Gang: gang}
	for _, at := range on {
		o.Pods = append(o.Pods, cluster.UID(at.Pod.UID))
	}
	p.open[p.sequence] = o
	p.emit(message.Propose{Proposal: shard.Proposal{From: p.me, Epoch: p.epoch, Session: p.session,
		Sequence: p.sequence, At: p.reader.Last, Unit: unit, Priority: priority, On: on}})
}

// Full reports whether no more proposals may be open.
func (p *Planner) Full() bool { return p.broken || p.session == 0 || len(p.open) >= shard.Window }

// Answered returns the proposal that an answer is about; ok is false if there is none without an answer.
func (p *Planner) Answered(ans shard.Answer) (o Open, ok bool) {
	if ans.Session != p.session {
		return Open{}, false
	}
	o, ok = p.open[ans.Sequence]
	delete(p.open, ans.Sequence)
	return o, ok
}

// GiveBack asks the arbiter to decide a unit.
func (p *Planner) GiveBack(unit string) {
	p.emit(message.GiveBack{Session: p.session, Unit: unit})
}

// Refusal returns why a proposal was refused, in the words of records.
func Refusal(ans shard.Answer) string {
	text := "refused by the arbiter: " + ans.Reason
	if ans.Plugin != "" {
		text = fmt.Sprintf("refused by the arbiter: node %s: %s says: %s", ans.Node, ans.Plugin, ans.Reason)
	}
	if ans.Entry != 0 {
		text += fmt.Sprintf(" (entry %d of the log)", ans.Entry)
	}
	return text
}

// Become returns the log, to continue it as the arbiter of an epoch. A planner that does not follow the log any more
// cannot become the arbiter.
func (p *Planner) Become(epoch shard.Epoch) *replica.Writer {
	if p.broken {
		panic("planner: it does not follow the log, and cannot be promoted")
	}
	return p.reader.Become(epoch)
}

// ErrPanic is why an entry was not applied whose handling panicked.
var ErrPanic = errors.New("applying the next entry panicked")

// EventOf returns the event that an engine without other instances would have got for a change of its store; ok is
// false for changes that decisions make.
func EventOf(ch cluster.Change) (ev message.Event, ok bool) {
	switch ch.Kind {
	case cluster.NodeChanged:
		return message.NodeSet{Node: ch.Node}, true
	case cluster.NodeRemoved:
		return message.NodeGone{Name: ch.Name}, true
	case cluster.ObjectChanged:
		return message.ObjectSet{Object: ch.Object}, true
	case cluster.ObjectRemoved:
		return message.ObjectGone{Kind: ch.Type, Key: ch.Key}, true
	case cluster.PodBound:
		return message.PodSet{Pod: ch.Pod}, true
	case cluster.PodRemoved:
		return message.PodGone{Pod: record.PodRef{UID: string(ch.UID)}}, true
	}
	return nil, false
}

// Says returns those of the effects that a planner has, in the memory of effects. Binds, writes and evictions are the
// arbiter's; what users see of a pod or a gang is said by the instance that decides it.
func (p *Planner) Says(
	effects []message.Effect, pending map[cluster.UID]*cluster.Pod, q *queue.Queue,
) []message.Effect {
	return slices.DeleteFunc(effects, func(f message.Effect) bool {
		switch f := f.(type) {
		case message.Propose, message.GiveBack, message.Rejoin, message.Decided, message.Moved, message.Wake,
			message.Heard, message.Trouble:
			return false
		case message.Condition:
			return pending[cluster.UID(f.Pod.UID)] == nil
		case message.WriteEvent:
			return pending[cluster.UID(f.Pod.UID)] == nil
		case message.GangStatus:
			return !q.HasGang(f.Gang)
		}
		return true
	})
}
