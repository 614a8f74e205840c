// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Host is what the arbiter needs of the engine.
type Host interface {
	// Emit appends an effect.
	Emit(message.Effect)
	// Now is the time of the last tick.
	Now() record.Time
	// Foreign reports whether foreign code takes part in the decisions of a profile.
	Foreign(schedulerName string) bool
	// Keeps reports whether only the arbiter can decide a unit now.
	Keeps(*queue.Unit) bool
	// Take takes a placement of a unit in flight, whole, if it fits on the ledger; else it returns why not, and the
	// unit stays in flight.
	Take(*queue.Unit, []shard.Placement) *Rejection
	// Fits reports whether a pod fits a node on the ledger.
	Fits(p *cluster.Pod, node string) bool
	// Decide runs a scheduling cycle for a unit in flight.
	Decide(*queue.Unit)
	// GangOf returns the gang with which a pod on its way was decided; zero for a pod by itself.
	GangOf(cluster.UID) cluster.GangKey
}

// Rejection is the first placement of a proposal that does not fit, and why. Plugin is empty if no plugin refuses it.
type Rejection struct{ Node, Plugin, Reason string }

// Config makes an Arbiter.
type Config struct {
	Host      Host
	Queue     *queue.Queue
	Deadlines *deadline.Heap
	Phase     deadline.Phase // of promises that end
	Name      string         // of this instance
	Policy    shard.Policy
	Log       *replica.Writer // of the arbiter's epoch
}

// Arbiter lends units and checks proposals. It belongs to the engine's goroutine.
type Arbiter struct {
	cfg     Config
	self    shard.Ordinal
	members shard.Members
	loans   shard.Loans
	inbox   *Inbox
	newest  Newest
	busy    bool
	// planners is how many other members there are.
	planners int

	// has are the pods that planners have: pod -> the unit with which it was lent. Invariant: its keys are the pods of
	// the lists in lent.
	has  map[cluster.UID]string
	lent map[string][]record.PodRef // unit -> its pods that its planner has, in the order in which it got them
	// kept are units that a planner gave back: they are decided here until they have a placement or are gone.
	kept     map[string]bool     // unit -> true
	promises map[string]*promise // unit -> what it is promised

	answers [shard.MaxMembers][]shard.Answer // that were not emitted yet
	out     []message.Effect                 // to be emitted behind the log
}

// New returns an arbiter that is the only member.
func New(cfg Config) *Arbiter {
	a := &Arbiter{cfg: cfg, inbox: NewInbox(cfg.Log.Epoch()), has: map[cluster.UID]string{},
		lent: map[string][]record.PodRef{}, kept: map[string]bool{}, promises: map[string]*promise{}}
	self, err := a.members.Join(cfg.Name, nil, shard.DefaultWeight)
	if err != nil {
		panic(fmt.Sprintf("arbiter: %v", err))
	}
	a.self = self
	for _, id := range slices.Sorted(maps.Keys(cfg.Log.Promises)) { // of the arbiter before
		cfg.Log.Append(replica.Entry{Kind: replica.PromiseEnded, Unit: id})
	}
	return a
}

// Handle handles an event about planners. It reports whether it is one.
func (a *Arbiter) Handle(ev message.Event) bool {
	switch ev := ev.(type) {
	case message.Joined:
		a.join(ev)
	case message.Left:
		a.leave(ev.Name)
	case message.Busy:
		a.busy = ev.Busy
	case message.Proposed:
		for _, p := range ev.List {
			a.inbox.Arrive(p)
		}
	case message.GivenBack:
		if loan, _ := a.loans.Of(ev.Unit); loan.To == ev.From && a.loans.Return(ev.Unit, ev.Session) {
			a.kept[ev.Unit] = true
			a.endLoan(ev.Unit, ev.From, "its planner gave it back")
		}
	default:
		return false
	}
	return true
}

func (a *Arbiter) join(ev message.Joined) {
	o, err := a.members.Join(ev.Name, ev.Labels, ev.Weight)
	if err != nil {
		a.cfg.Host.Emit(message.Trouble{Object: ev.Name, What: "an instance cannot join", Details: err.Error()})
		return
	}
	a.planners++
	a.inbox.Open(o, ev.Session)
	a.out = append(a.out, message.Welcome{Name: ev.Name, To: o, Session: ev.Session})
}

// leave removes a planner. Its units are decided by others.
func (a *Arbiter) leave(name string) {
	o, known := a.members.Named(name)
	if !known || o == a.self {
		return
	}
	a.inbox.Close(o)
	a.answers[o] = nil
	ended := a.loans.Reclaim(o)
	a.members.Leave(name)
	a.planners--
	for _, loan := range ended {
		a.endLoan(loan.Unit, o, "its planner has left")
	}
}

// member returns the name of a member, for messages.
func (a *Arbiter) member(o shard.Ordinal) string {
	m, _ := a.members.Get(o)
	return m.Name
}

// Note follows changes of the ledger that are final: they are the next entries of the log.
func (a *Arbiter) Note(changes []cluster.Change) {
	for _, ch := range changes {
		e := replica.Of(ch)
		if ch.Kind == cluster.PodTaken {
			if key := a.cfg.Host.GangOf(ch.Pod.UID); key != (cluster.GangKey{}) {
				e.Unit = gangID(key)
			}
		}
		a.newest.Note(a.cfg.Log.Append(e), ch)
	}
}

// Flush emits the entries of the log since the last call, and then what is behind them. Must be called after Note.
func (a *Arbiter) Flush() {
	for _, f := range a.cfg.Log.Frames() {
		a.cfg.Host.Emit(message.Publish{First: f.First, Last: f.Last, Frame: f.Bytes})
	}
	for o := range a.answers {
		if list := a.answers[o]; len(list) > 0 {
			a.cfg.Host.Emit(message.Answers{To: shard.Ordinal(o), List: list})
			a.answers[o] = nil
		}
	}
	for _, f := range a.out {
		a.cfg.Host.Emit(f)
	}
	a.out = nil
}

// Snapshot returns the state of a store at the log's last position, for a planner that joins.
func (a *Arbiter) Snapshot(store *cluster.Store) []byte { return a.cfg.Log.Snapshot(store) }
