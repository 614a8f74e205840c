// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Script runs a scheduler by a recording of it. The recording says what happens outside of the scheduler and its API
// server, in which order everything happens, and which calls fail. What the scheduler's calls do to pods is computed
// by the World, and the scheduler sees that instead of the recorded version. If the World handles calls as the real
// API server did, all effects of the scheduler are those of the recording.
type Script struct {
	w      *World
	engine Stepper
	by     *scheduler // counts binds; it takes no turns
	trails map[cluster.UID]*trail
	evicts []*scriptCall // evictions without an answer, in the order of their requests
	report ScriptReport
}

// ScriptReport is what a Script counted.
type ScriptReport struct {
	Events    int `json:"events"`
	Decisions int `json:"decisions"`
	// Binds, Evictions and Statuses are the calls that were carried out in the World.
	Binds     int `json:"binds"`
	Evictions int `json:"evictions"`
	Statuses  int `json:"statuses"`
	// Foreign counts pods that other schedulers bound, Before the changes by calls that were under way when the
	// recording began.
	Foreign     int `json:"foreignBinds"`
	Before      int `json:"callsBeforeRecording"`
	Overcommits int `json:"overcommits"`
	// Unexplained are changes of pods and answers to calls that the World does not have, the first unexplainedKept.
	Unexplained      []Unexplained `json:"unexplained,omitempty"`
	UnexplainedCount int           `json:"unexplainedCount"`
}

const unexplainedKept = 10

// Plus returns the sums of two reports, of runs one after the other.
func (r ScriptReport) Plus(o ScriptReport) ScriptReport {
	for _, u := range o.Unexplained {
		if len(r.Unexplained) < unexplainedKept {
			u.Event += r.Events
			r.Unexplained = append(slices.Clip(r.Unexplained), u)
		}
	}
	r.Events, r.Decisions = r.Events+o.Events, r.Decisions+o.Decisions
	r.Binds, r.Evictions, r.Statuses = r.Binds+o.Binds, r.Evictions+o.Evictions, r.Statuses+o.Statuses
	r.Foreign, r.Before, r.Overcommits = r.Foreign+o.Foreign, r.Before+o.Before, r.Overcommits+o.Overcommits
	r.UnexplainedCount += o.UnexplainedCount
	return r
}

// Unexplained is a recorded event that the World would not have given.
type Unexplained struct {
	Event  int    `json:"event"` // the number of the event, from 1
	Object string `json:"object"`
	What   string `json:"what"`
}

// status is what calls of schedulers write to a pod.
type status struct {
	node, nominated      string
	condition            cluster.Condition
	terminating, evicted bool // evicted: it has the condition of a preempted pod
	bound                cluster.BoundMark
}

func statusOf(p *cluster.Pod) status {
	s := status{p.NodeName, p.Nominated, p.Condition, p.Terminating, p.Preempted || p.EvictionPending,
		cluster.BoundMark{}}
	if p.Bound != nil {
		s.bound = *p.Bound
	}
	return s
}

// writeTo sets what calls write in a copy of a record.
func (s status) writeTo(seen *cluster.Pod) *cluster.Pod {
	next := *seen
	next.NodeName, next.Nominated, next.Condition, next.Terminating = s.node, s.nominated, s.condition, s.terminating
	next.Preempted, next.EvictionPending = s.evicted && s.terminating, s.evicted && !s.terminating
	if next.Bound = nil; s.bound != (cluster.BoundMark{}) {
		next.Bound = &s.bound
	}
	return &next
}

// trail is what is known of a pod between the scheduler's calls and its sight of them.
type trail struct {
	// versions are the statuses in the API server that the scheduler has not seen, after the one that it saw last.
	versions []status
	calls    []*scriptCall // about the pod, in the order of their requests, of patches the newest
	// before is how many changes of a pod that existed when the recording began may be by calls before it.
	before int
	gone   bool
}

// unbound returns the index of the last version without a node, 0 if there is none.
func (t *trail) unbound() int {
	i := len(t.versions) - 1
	for i > 0 && t.versions[i].node != "" {
		i--
	}
	return i
}

// scriptCall is a call of the scheduler. One of its fields is set.
type scriptCall struct {
	bind    *engine.Bind
	evict   *engine.Evict
	patch   engine.Effect // Condition or Nominate
	done    bool          // the API server has carried it out, and outcome is the answer to a bind
	outcome engine.BindDone
}

// callsBefore is how many calls about a pod are assumed to be under way at most when a recording begins.
const callsBefore = 2

// NewScript returns a Script for an engine. st is the State of an engine that has a past; nil for none.
func NewScript(e Stepper, st *engine.State) *Script {
	s := &Script{w: New(Setup{}), engine: e, trails: map[cluster.UID]*trail{}}
	s.by = &scheduler{w: s.w, tally: &Tally{}}
	if st != nil {
		s.begin(st)
	}
	return s
}

// begin makes the cluster that a State describes. Pods that were decided are bound as soon as the recording shows it.
func (s *Script) begin(st *engine.State) {
	s.w.now = max(0, time.Duration(st.Now-s.w.setup.Epoch))
	for _, row := range st.Cluster.Rows {
		if row.Node != nil {
			s.w.AddRecord(row.Node)
		}
	}
	add := func(p *cluster.Pod) {
		if s.trails[p.UID] == nil {
			s.arrive(p).before = callsBefore
		}
	}
	for _, p := range st.Pending { // the newest versions, of assumed pods too
		add(p)
	}
	for _, row := range st.Cluster.Rows {
		for _, held := range row.Pods {
			add(held.Pod)
		}
	}
	for _, f := range st.Flights {
		if f.Stage != "binding" {
			continue
		}
		c := &scriptCall{bind: &engine.Bind{Pod: f.Pod.Ref(), Node: f.Node, Decision: f.Decision, Gang: f.Gang}}
		if p := s.w.Pod(f.Pod.UID); p != nil && p.Record.NodeName == f.Node {
			c.done, c.outcome = true, engine.BindDone{Pod: f.Pod.Ref(), Node: f.Node} // it was seen before its answer
		}
		s.request(f.Pod.UID, c)
	}
}

// Report returns what was counted so far.
func (s *Script) Report() ScriptReport {
	out := s.report
	out.Overcommits = s.by.tally.Overcommits
	return out
}

// Step gives the scheduler the next event of the recording, as the World has it, and returns the effects.
func (s *Script) Step(ev engine.Event) []engine.Effect {
	s.report.Events++
	effects := s.engine.Step(s.happen(ev))
	s.w.agenda = agenda{} // what follows by itself is recorded
	for _, f := range effects {
		s.take(f)
	}
	return effects
}

// happen carries out what an event reports, and returns the event as the World gives it.
func (s *Script) happen(ev engine.Event) engine.Event {
	switch ev := ev.(type) {
	case engine.Tick:
		s.w.now = max(s.w.now, time.Duration(ev.Now-s.w.setup.Epoch))
	case engine.NodeSet:
		if n := s.w.Node(ev.Node.Name); n != nil {
			s.w.SetRecord(n, ev.Node)
		} else {
			s.w.AddRecord(ev.Node)
		}
	case engine.NodeGone:
		if n := s.w.Node(ev.Name); n != nil {
			s.w.Remove(n)
		}
	case engine.PodSet:
		return engine.PodSet{Pod: s.see(ev.Pod)}
	case engine.PodGone:
		s.end(ev.Pod)
	case engine.BindDone:
		return s.bound(ev)
	case engine.EvictDone:
		s.evicted(ev)
	}
	return ev
}

// take notes the calls among the effects.
func (s *Script) take(f engine.Effect) {
	switch f := f.(type) {
	case engine.Decided:
		s.report.Decisions++
	case engine.Bind:
		s.request(cluster.UID(f.Pod.UID), &scriptCall{bind: &f})
	case engine.Condition:
		s.request(cluster.UID(f.Pod.UID), &scriptCall{patch: f})
	case engine.Nominate:
		s.request(cluster.UID(f.Pod.UID), &scriptCall{patch: f})
	case engine.Evict:
		call := &scriptCall{evict: &f}
		s.evicts = append(s.evicts, call)
		for _, v := range f.Victims {
			s.request(cluster.UID(v.UID), call)
		}
		for _, d := range f.Denominate {
			s.request(cluster.UID(d.UID), &scriptCall{patch: engine.Nominate{Pod: d}})
		}
	}
}

func (s *Script) request(pod cluster.UID, c *scriptCall) {
	t := s.trails[pod]
	if t == nil {
		t = &trail{gone: true}
		s.trails[pod] = t
	}
	if c.patch != nil {
		if n := len(t.calls); n >= callsKept {
			if i := slices.IndexFunc(t.calls, func(c *scriptCall) bool { return c.patch != nil }); i >= 0 {
				t.calls = slices.Delete(t.calls, i, i+1)
			}
		}
	}
	t.calls = append(t.calls, c)
}

// callsKept bounds the calls about one pod. A patch has no answer, so it is not known when it is over.
const callsKept = 16

// arrive creates a pod as it was first seen.
func (s *Script) arrive(seen *cluster.Pod) *trail {
	p := s.w.Create(s.w.TemplateOf(seen), NewPod{Name: seen.Name, UID: seen.UID, Node: seen.NodeName})
	p.Record = seen
	t := s.trails[seen.UID]
	if t == nil {
		t = &trail{}
		s.trails[seen.UID] = t
	}
	t.gone, t.versions = false, []status{statusOf(seen)}
	return t
}

// see returns a version of a pod as the World has it: what calls of schedulers write is the World's, the rest is as
// recorded. Calls that the version shows are carried out first.
func (s *Script) see(seen *cluster.Pod) *cluster.Pod {
	t, p := s.trails[seen.UID], s.w.Pod(seen.UID)
	switch {
	case t == nil || p == nil && len(t.versions) == 0:
		s.arrive(seen)
		return seen
	case p == nil: // an answer has said before that it is gone
		return seen
	}
	want := statusOf(seen)
	at := slices.Index(t.versions, want)
	if at < 0 {
		s.carryOut(p, t, want)
		if at = slices.Index(t.versions, want); at < 0 {
			s.outside(p, t, want)
			at = slices.Index(t.versions, want)
		}
	}
	t.versions = slices.Delete(t.versions, 0, at)
	have := t.versions[0].writeTo(seen)
	newest := t.versions[len(t.versions)-1].writeTo(seen)
	s.replace(p, newest)
	return have
}

// replace takes over the rest of a recorded version.
func (s *Script) replace(p *Pod, rec *cluster.Pod) {
	if rec.Spec != p.Record.Spec {
		t := s.w.TemplateOf(rec)
		if p.node != nil {
			p.node.Used.add(p.Template.need, -1)
			p.node.Used.add(t.need, 1)
		}
		p.Template = t
	}
	p.Record = rec
}

// carryOut carries out the calls that a version of a pod shows.
func (s *Script) carryOut(p *Pod, t *trail, want status) {
	if want.condition != p.Record.Condition || want.nominated != p.Record.Nominated {
		s.writeStatus(p, t, want)
	}
	if want.evicted && !p.Record.Preempted && !p.Record.EvictionPending || want.terminating && !p.Record.Terminating {
		i := slices.IndexFunc(t.calls, func(c *scriptCall) bool { return c.evict != nil })
		if i >= 0 {
			s.evict(p, t, want.terminating)
		}
	}
	if want.node != "" && p.Record.NodeName == "" {
		for _, c := range t.calls {
			if c.bind != nil && !c.done && c.bind.Node == want.node {
				s.bind(p, t, c)
				break
			}
		}
	}
}

// writeStatus carries out the patches that give the condition and nomination of a version: one of them, or several in a
// row. They may have been overtaken by a bind that the scheduler knows of already, or by later patches. If a version
// shows a bind, the status before it was not seen, and no patch is needed.
func (s *Script) writeStatus(p *Pod, t *trail, want status) {
	if want.node != "" {
		return
	}
	base, newest := t.unbound(), p.Record
	defer func() { p.Record = newest }()
	for first := range t.calls {
		p.Record = t.versions[base].writeTo(newest)
		for _, c := range t.calls[first:] {
			if c.patch == nil {
				continue
			}
			s.w.patch(c.patch)
			if p.Record.Condition != want.condition || p.Record.Nominated != want.nominated {
				continue
			}
			s.report.Statuses++
			t.versions = slices.Insert(t.versions, base+1, statusOf(p.Record))
			if base+2 == len(t.versions) {
				newest = p.Record
			}
			return
		}
	}
}

// evict carries out the eviction of one victim: the condition, then the deletion.
func (s *Script) evict(p *Pod, t *trail, deleted bool) {
	if !deleted {
		p.change(func(c *cluster.Pod) { c.EvictionPending = true })
		s.wrote(p, t)
		return
	}
	t.calls = slices.DeleteFunc(t.calls, func(c *scriptCall) bool { return c.evict != nil })
	s.report.Evictions++
	if p.Record.NodeName != "" {
		s.w.Delete(p, Evicted)
	}
	p.change(func(c *cluster.Pod) { c.Terminating, c.Preempted, c.EvictionPending = true, true, false })
	s.wrote(p, t)
}

// bind carries out a bind.
func (s *Script) bind(p *Pod, t *trail, c *scriptCall) {
	c.outcome, c.done = s.w.bind(*c.bind, s.by), true
	if c.outcome.Outcome != engine.Bound {
		return
	}
	s.report.Binds++
	s.wrote(p, t)
}

// wrote notes a new version.
func (s *Script) wrote(p *Pod, t *trail) {
	t.versions = append(t.versions, statusOf(p.Record))
}

// outside adopts a change that no known call explains.
func (s *Script) outside(p *Pod, t *trail, want status) {
	newest := t.versions[len(t.versions)-1]
	rest := want
	rest.terminating, rest.evicted = newest.terminating, newest.evicted
	switch {
	case want.terminating && !want.evicted && rest == newest: // deleted by its controller or the user
		if p.Record.NodeName != "" {
			s.w.Delete(p, Deleted)
		}
	case t.before > 0:
		s.report.Before++
		t.before--
	case want.node != "" && newest.node == "" && !slices.ContainsFunc(t.calls, func(c *scriptCall) bool {
		return c.bind != nil
	}):
		s.report.Foreign++
	default:
		s.unexplained(p.Record.Key(), fmt.Sprintf("recorded %+v, simulated %+v", want, newest))
	}
	if want.node == "" && newest.node != "" { // it is older than a bind that an answer has shown
		t.versions = slices.Insert(t.versions, t.unbound()+1, want)
		return
	}
	if want.node != "" && p.BoundAt < 0 {
		s.w.put(p, want.node)
	}
	t.versions = append(t.versions, want)
	p.Record = want.writeTo(p.Record)
}

func (s *Script) unexplained(object, what string) {
	s.report.UnexplainedCount++
	if len(s.report.Unexplained) < unexplainedKept {
		s.report.Unexplained = append(s.report.Unexplained, Unexplained{s.report.Events, object, what})
	}
}

// end removes a pod. Binds that have no answer yet may have come before its end, or after it.
func (s *Script) end(ref record.PodRef) {
	uid := cluster.UID(ref.UID)
	if p := s.w.Pod(uid); p != nil {
		s.w.Vanish(p, Deleted)
	}
	t := s.trails[uid]
	if t == nil {
		return
	}
	t.gone = true
	t.calls = slices.DeleteFunc(t.calls, func(c *scriptCall) bool { return c.bind == nil })
	if len(t.calls) == 0 {
		delete(s.trails, uid)
	}
}

// bound returns the World's answer to a bind. Whether the call reached the API server is as recorded.
func (s *Script) bound(then engine.BindDone) engine.BindDone {
	uid := cluster.UID(then.Pod.UID)
	t, p := s.trails[uid], s.w.Pod(uid)
	if t == nil {
		s.unexplained(then.Pod.Key(), "a bind is answered that was not requested")
		return then
	}
	i := slices.IndexFunc(t.calls, func(c *scriptCall) bool { return c.bind != nil })
	if i < 0 {
		s.unexplained(then.Pod.Key(), "a bind is answered that was not requested")
		return then
	}
	c := t.calls[i]
	t.calls = slices.Delete(t.calls, i, i+1)
	defer func() {
		if t.gone && len(t.calls) == 0 {
			delete(s.trails, uid)
		}
	}()
	reached := then.Outcome != engine.BindFailed && then.Outcome != engine.BindRecalled
	switch {
	case p == nil, !reached && !c.done: // it may have ended before or after the bind; or the call had no effect
		return then
	case c.done:
	case then.Outcome == engine.BoundElsewhere && p.BoundAt < 0:
		s.report.Foreign++
		s.w.put(p, then.Node)
		s.wrote(p, t)
		c.outcome = s.w.bind(*c.bind, s.by)
	case then.Outcome == engine.PodVanished:
		s.w.Vanish(p, Deleted)
		return then
	default:
		s.bind(p, t, c)
	}
	now := c.outcome
	now.Message = then.Message
	if now != then {
		s.unexplained(then.Pod.Key(), fmt.Sprintf("the bind was answered by %v at %q, simulated %v at %q",
			then.Outcome, then.Node, now.Outcome, now.Node))
	}
	return now
}

// evicted carries out what is left of an eviction.
func (s *Script) evicted(then engine.EvictDone) {
	i := slices.IndexFunc(s.evicts, func(c *scriptCall) bool {
		return c.evict.For == then.For && c.evict.Decision == then.Decision
	})
	if i < 0 {
		s.report.Before++
		return
	}
	c := s.evicts[i]
	s.evicts = slices.Delete(s.evicts, i, i+1)
	if then.Message != "" {
		return // some victims were not deleted, and the recording shows which were
	}
	for _, v := range c.evict.Victims {
		p, t := s.w.Pod(cluster.UID(v.UID)), s.trails[cluster.UID(v.UID)]
		if p != nil && t != nil && !p.Record.Terminating {
			s.evict(p, t, true)
		}
	}
}
