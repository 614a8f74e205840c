// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// heartbeat is how long a planner sleeps at most.
const heartbeat = time.Second

// A planner whose session breaks joins anew at once. If it breaks again within calm, it waits for firstPause, then for
// twice as long each time, up to longestPause: each join costs the loop a snapshot.
const (
	calm         = record.Time(5 * time.Minute)
	firstPause   = record.Time(time.Second)
	longestPause = record.Time(time.Minute)
)

// A planner's mail is engine.Event, or one of these.
type (
	// join asks that the planner join.
	join struct{}
	// welcome says that the planner is a member, and has a snapshot of the log to begin with.
	welcome struct {
		message.Welcomed
		snapshot []byte
	}
)

// sessions numbers the sessions of all planners: none is used twice, whichever ordinals they get.
type sessions struct{ last atomic.Uint64 }

func (s *sessions) next() shard.Session { return shard.Session(s.last.Add(1)) }

// planner decides the units that are lent to it. All but its mail belongs to the goroutine of run.
type planner struct {
	name     string
	cfg      *Config
	sessions *sessions
	mail     *mailbox[any]
	said     *mailbox[Message]

	engine *engine.Engine // nil while it is not a member
	as     message.Welcomed
	wake   record.Time // 0 for none

	// Of sessions that broke: how many in a row, when the last one did, and when to join again; 0 for not.
	broken           int
	brokeAt, rejoins record.Time
}

func newPlanner(name string, cfg *Config, sessions *sessions, said *mailbox[Message]) *planner {
	return &planner{name: name, cfg: cfg, sessions: sessions, mail: newMailbox[any](), said: said}
}

// run follows the arbiter and decides, one cycle between two looks at the mail, until ctx ends.
func (p *planner) run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("planner").WithValues("planner", p.name)
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for ctx.Err() == nil {
		if p.turn(log) {
			continue
		}
		timer.Reset(p.rest())
		select {
		case <-ctx.Done():
		case <-p.mail.news:
		case <-timer.C:
		}
	}
}

// turn takes the mail and runs a cycle. It reports whether more can be decided at once. A panic that the engine does
// not contain ends the session, and with it the engine; the other planners and the loop go on.
func (p *planner) turn(log klog.Logger) (more bool) {
	defer func() {
		if what := recover(); what != nil {
			more = false
			p.said.put(Message{Effect: engine.Trouble{Object: p.name, What: "a local planner panicked",
				Details: fmt.Sprintf("%v\n%s", what, debug.Stack())}})
			p.leave(log, fmt.Sprint("panic: ", what))
		}
	}()
	p.receive(log)
	if p.engine == nil || !p.engine.Ready() {
		return false
	}
	p.step(log, engine.Cycle{})
	return true
}

// rest is how long to sleep if no mail comes.
func (p *planner) rest() time.Duration {
	rest, now := heartbeat, p.cfg.Now()
	for _, at := range []record.Time{p.wake, p.rejoins} {
		if at != 0 {
			rest = min(rest, max(0, time.Duration(at-now)))
		}
	}
	return rest
}

// receive takes the time and the mail.
func (p *planner) receive(log klog.Logger) {
	now := p.cfg.Now()
	if p.rejoins != 0 && p.rejoins <= now {
		p.join()
	}
	if p.engine != nil {
		if p.wake <= now {
			p.wake = 0
		}
		p.step(log, engine.Tick{Now: now})
	}
	for _, m := range p.mail.take() {
		switch m := m.(type) {
		case join:
			p.join()
		case welcome:
			p.begin(log, m)
		case engine.Event:
			p.step(log, m)
		}
	}
}

func (p *planner) join() {
	p.rejoins = 0
	p.said.put(Message{Event: message.Joined{Name: p.name, Weight: shard.DefaultWeight, Session: p.sessions.next()}})
}

// leave ends a session that broke. The planner joins anew, with a snapshot.
func (p *planner) leave(log klog.Logger, why string) {
	now := p.cfg.Now()
	if now-p.brokeAt > calm {
		p.broken = 0
	}
	pause := record.Time(0)
	if p.broken > 0 {
		pause = min(longestPause, firstPause<<(p.broken-1))
	}
	log.Error(nil, "A local planner joins anew", "why", why, "after", time.Duration(pause))
	p.engine = nil
	p.said.put(Message{Event: message.Left{Name: p.name}})
	// Shifts stay small: more than eight times in a row is the longest pause in any case.
	p.broken, p.brokeAt, p.rejoins = min(p.broken+1, 8), now, max(1, now+pause)
}

// begin makes the engine that follows the log from a snapshot on. A planner for which that fails stays outside: it
// would fail again.
func (p *planner) begin(log klog.Logger, w welcome) {
	e, err := p.follow(w.snapshot)
	if err != nil {
		log.Error(err, "A local planner cannot follow the log, and decides nothing")
		p.said.put(Message{Event: message.Left{Name: p.name}})
		return
	}
	p.engine, p.as, p.wake = e, w.Welcomed, 0
	p.step(log, engine.Tick{Now: p.cfg.Now()})
	p.step(log, w.Welcomed)
}

func (p *planner) follow(snapshot []byte) (*engine.Engine, error) {
	cfg, err := p.cfg.Engine()
	if err != nil {
		return nil, fmt.Errorf("configuring it: %w", err)
	}
	from, err := replica.Load(snapshot)
	if err != nil {
		return nil, fmt.Errorf("loading the arbiter's state: %w", err)
	}
	return engine.Follow(cfg, from)
}

// step gives an event to the engine and says what is for others. Messages that come after the end of a session are of
// that session, up to the next welcome.
func (p *planner) step(log klog.Logger, ev engine.Event) {
	if p.engine == nil {
		return
	}
	var say []Message
	broken, began := "", p.cfg.Now()
	effects := p.engine.Step(ev)
	took := time.Duration(p.cfg.Now() - began)
	for _, f := range effects {
		switch f := f.(type) {
		case message.Propose:
			say = append(say, Message{Event: message.Proposed{List: []shard.Proposal{f.Proposal}}})
		case message.GiveBack:
			say = append(say, Message{Event: message.GivenBack{From: p.as.Ordinal, Session: f.Session, Unit: f.Unit}})
		case engine.Condition, engine.WriteEvent, engine.GangStatus, engine.Trouble:
			say = append(say, Message{Effect: f})
		case engine.Decided:
			if f.Decision.Verdict != record.Placed {
				a := Attempt{f.Decision.Clone(), took}
				a.Instance = p.name
				say = append(say, Message{Attempt: &a})
			}
		case engine.Wake:
			p.wake = f.At
		case message.Rejoin:
			broken = f.Why
		}
	}
	if len(say) > 0 {
		p.said.put(say...)
	}
	if broken != "" {
		p.leave(log, broken)
	}
}
