// SPDX-License-Identifier: Apache-2.0

package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Rules are what goes wrong now. The zero value is ready: nothing does. Any goroutine may use it.
type Rules struct {
	mu      sync.Mutex
	rules   []*Rule
	streams map[*stream]bool // open watches -> true
	// changed is closed and replaced with every change of the rules; nil if it was not requested since.
	changed chan struct{}
}

// Rule is one fault, until it is removed or has struck as often as it may.
type Rule struct {
	owner *Rules

	request *Request
	event   *Event
	frozen  string // resource whose watches stand still; * for all

	// first is closed by the first hit, gone when the rule is removed.
	first, gone chan struct{}
	seen, hits  int // both guarded by owner.mu
	removed     bool
}

// Request chooses requests and says what becomes of them. An empty field matches everything.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Resource is the plural in lower case, Subresource what follows the name. A rule without a Subresource matches
	// requests with any.
	Resource, Subresource string
	Namespace, Name       string
	// Times is how often the rule strikes, 0 for as long as it is there. Every strikes only each n-th match.
	Times, Every int

	Fate Fate
}

// Event chooses events of watches and says what becomes of them. An empty field matches everything, except
// bookmarks, which must be asked for.
type Event struct {
	Resource string
	// Type is ADDED, MODIFIED, DELETED or BOOKMARK.
	Type            string
	Namespace, Name string
	// When, if not nil, is asked last.
	When         func(Seen) bool
	Times, Every int

	Twist Twist
}

// On adds a rule for requests. Earlier rules come first; one whose Fate is zero only counts and lets later ones strike.
func (r *Rules) On(q Request) *Rule { return r.add(&Rule{request: &q}) }

// OnEvent adds a rule for events of watches.
func (r *Rules) OnEvent(e Event) *Rule { return r.add(&Rule{event: &e}) }

// Freeze stops the watches of a resource, * for all, those that begin later too. Their connections stay. When the
// rule is removed they go on where they were.
func (r *Rules) Freeze(resource string) *Rule { return r.add(&Rule{frozen: resource}) }

func (r *Rules) add(rule *Rule) *Rule {
	rule.owner, rule.first, rule.gone = r, make(chan struct{}), make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rules = append(r.rules, rule)
	r.change()
	return rule
}

// Clear removes all rules.
func (r *Rules) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.rules {
		rule.end()
	}
	r.rules = nil
	r.change()
}

// Remove takes the rule away. Requests that it keeps without an answer are cut then.
func (rule *Rule) Remove() {
	r := rule.owner
	r.mu.Lock()
	defer r.mu.Unlock()
	rule.end()
	r.rules = slices.DeleteFunc(r.rules, func(other *Rule) bool { return other == rule })
	r.change()
}

func (rule *Rule) end() {
	if !rule.removed {
		rule.removed = true
		close(rule.gone)
	}
}

// Hits is how often the rule has struck.
func (rule *Rule) Hits() int {
	rule.owner.mu.Lock()
	defer rule.owner.mu.Unlock()
	return rule.hits
}

// Await waits for the first hit.
func (rule *Rule) Await(ctx context.Context) error {
	select {
	case <-rule.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s never struck: %w", rule, ctx.Err())
	}
}

// String says what the rule does.
func (rule *Rule) String() string {
	switch {
	case rule.request != nil:
		q := rule.request
		return fmt.Sprintf("fault on %s %s/%s %s/%s: %+v", or(q.Verb), or(q.Resource), or(q.Subresource), or(q.Namespace), or(q.Name), q.Fate)
	case rule.event != nil:
		e := rule.event
		return fmt.Sprintf("fault on watch of %s, %s %s/%s: %+v", or(e.Resource), or(e.Type), or(e.Namespace), or(e.Name), e.Twist)
	}
	return "frozen watch of " + rule.frozen
}

func or(s string) string {
	if s == "" {
		return "*"
	}
	return s
}

// change wakes those who wait for other rules. The lock is held.
func (r *Rules) change() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// strike counts a match and reports whether the rule strikes. The lock is held.
func (rule *Rule) strike(times, every int) bool {
	rule.seen++
	if every > 1 && rule.seen%every != 0 || times > 0 && rule.hits >= times {
		return false
	}
	rule.hits++
	if rule.hits == 1 {
		close(rule.first)
	}
	return true
}

// forRequest finds the rule that strikes a request, nil for none.
func (r *Rules) forRequest(about asked) *Rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.rules {
		q := rule.request
		if q == nil || !is(q.Verb, about.verb) || !is(q.Resource, about.resource) || !is(q.Subresource, about.subresource) ||
			!is(q.Namespace, about.namespace) || !is(q.Name, about.name) {
			continue
		}
		if rule.strike(q.Times, q.Every) && q.Fate != (Fate{}) {
			return rule
		}
	}
	return nil
}

// inspects reports whether any rule is about events of a resource.
func (r *Rules) inspects(resource string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.rules, func(rule *Rule) bool { return rule.event != nil && is(rule.event.Resource, resource) })
}

// forEvent finds what becomes of an event, nil when it passes.
func (r *Rules) forEvent(s Seen) *Twist {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.rules {
		e := rule.event
		if e == nil || !is(e.Resource, s.Resource) || !is(e.Namespace, s.Namespace) || !is(e.Name, s.Name) || !is(e.Type, s.Type) ||
			e.Type == "" && s.Type == bookmark || e.When != nil && !e.When(s) {
			continue
		}
		if rule.strike(e.Times, e.Every) && e.Twist != (Twist{}) {
			return &e.Twist
		}
	}
	return nil
}

// frozenNow reports whether watches of a resource stand still, and gives a channel that closes when the rules change.
func (r *Rules) frozenNow(resource string) (bool, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	for _, rule := range r.rules {
		if rule.frozen != "" && (rule.frozen == "*" || rule.frozen == resource) {
			if rule.hits == 0 {
				rule.strike(0, 0)
			}
			return true, r.changed
		}
	}
	return false, r.changed
}

// EndWatches ends the open watches of a resource, * for all, and returns how many. Those that begin later are not
// touched.
func (r *Rules) EndWatches(resource string, how End) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for s := range r.streams { // order: each for itself
		if resource != "*" && s.resource != resource {
			continue
		}
		select {
		case s.ends <- how:
			n++
		default: // it ends already
		}
	}
	return n
}

// Watches is how many watches of a resource are open, * for all.
func (r *Rules) Watches(resource string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for s := range r.streams { // order: counted only
		if resource == "*" || s.resource == resource {
			n++
		}
	}
	return n
}

func (r *Rules) opened(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams == nil {
		r.streams = map[*stream]bool{}
	}
	r.streams[s] = true
}

func (r *Rules) ended(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.streams, s)
}

// is reports whether a field of a rule matches; an empty one matches everything.
func is(want, have string) bool { return want == "" || want == have }

// asked is what a request is about.
type asked struct {
	verb, resource, subresource, namespace, name string
}

// pause waits, and reports whether neither ctx nor until ended first.
func pause(ctx context.Context, d time.Duration, until <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-until:
		return false
	case <-ctx.Done():
		return false
	}
}
