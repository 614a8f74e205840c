// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Epoch is that of the arbiter of local planners, which they do not outlive.
const Epoch shard.Epoch = 1

// Config makes a Runner.
type Config struct {
	// Planners is how many there are, 1 to shard.MaxMembers-1: the arbiter is a member too.
	Planners int
	// Engine returns the configuration of a planner's engine, at each call with plugins of its own. It is called on
	// goroutines of planners.
	Engine func() (engine.Config, error)
	// Snapshot returns the arbiter's state at the last position of its log. It is called in Carry.
	Snapshot func() []byte
	// Now is the clock of the loop.
	Now func() record.Time
}

// Runner runs local planners. Run may be called on any goroutine, all other methods on that of the loop.
type Runner struct {
	cfg      Config
	planners []*planner
	said     *mailbox[Message]
	members  [shard.MaxMembers]*planner // ordinal -> planner; nil for none
	// joinable is a snapshot of the log's last position; nil if there is none. Planners that join at once share it.
	joinable []byte
}

// Message is what a planner says. One of the three is set.
type Message struct {
	// Event is for the arbiter's engine: Joined, Left, GivenBack, or Proposed with one proposal.
	Event engine.Event
	// Effect is to be carried out as one of the arbiter's: what users see of units that a planner decides, and Trouble.
	Effect engine.Effect
	// Attempt is one that placed nothing.
	Attempt *Attempt
}

// Attempt is a decision of a planner by which its pod has no node, with the planner as Instance. Others become
// decisions of the arbiter.
type Attempt struct {
	record.Decision
	Took time.Duration // the Step of the planner's engine
}

// New returns a runner whose planners have not joined.
func New(cfg Config) *Runner {
	if cfg.Planners < 1 || cfg.Planners >= shard.MaxMembers {
		panic(fmt.Sprintf("instances: %d local planners", cfg.Planners))
	}
	r := &Runner{cfg: cfg, said: newMailbox[Message]()}
	sessions := new(sessions)
	for i := range cfg.Planners {
		r.planners = append(r.planners, newPlanner(fmt.Sprintf("local-%d", i), &cfg, sessions, r.said))
	}
	return r
}

// Planners returns how many planners there are.
func (r *Runner) Planners() int { return len(r.planners) }

// Run runs the planners until ctx ends, and returns when all have ended.
func (r *Runner) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for _, p := range r.planners {
		all.Go(func() { p.run(ctx) })
	}
}

// Join lets the planners join. It must be called once, when the arbiter's engine may decide.
func (r *Runner) Join() {
	for _, p := range r.planners {
		p.mail.put(join{})
	}
}

// Ready returns a channel that has a value if Take may have something.
func (r *Runner) Ready() <-chan struct{} { return r.said.news }

// Take returns what the planners have said since the last call, each planner's messages in its order.
func (r *Runner) Take() []Message { return r.said.take() }

// Carry carries what a Step of the arbiter's engine asks for planners. It does not keep effects.
func (r *Runner) Carry(effects []engine.Effect) {
	for _, f := range effects {
		switch f := f.(type) {
		case message.Publish:
			r.joinable = nil
			for _, p := range r.members {
				if p != nil {
					p.mail.put(message.Entries{Frame: f.Frame})
				}
			}
		case message.Welcome:
			r.welcome(f)
		case message.Lend:
			r.to(f.To, message.Lent{Pods: f.Pods})
		case message.EndLoan:
			r.to(f.To, message.LoanOver{Pods: f.Pods})
		case message.Answers:
			r.to(f.To, message.Answered{List: f.List})
		}
	}
}

func (r *Runner) to(o shard.Ordinal, ev engine.Event) {
	if p := r.members[o]; p != nil {
		p.mail.put(ev)
	}
}

func (r *Runner) welcome(f message.Welcome) {
	i := slices.IndexFunc(r.planners, func(p *planner) bool { return p.name == f.Name })
	if i < 0 {
		panic(fmt.Sprintf("instances: %q is welcome, and no planner of this process", f.Name))
	}
	p := r.planners[i]
	for o := range r.members {
		if r.members[o] == p { // it had joined before
			r.members[o] = nil
		}
	}
	r.members[f.To] = p
	if r.joinable == nil {
		r.joinable = r.cfg.Snapshot()
	}
	p.mail.put(welcome{message.Welcomed{Ordinal: f.To, Epoch: Epoch, Session: f.Session}, r.joinable})
}
