// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// scene is a detector with words for what happens.
type scene struct {
	*Detector
	now    record.Time
	server Server
}

func newScene() *scene { return &scene{Detector: NewDetector(DefaultLimits), now: record.Second} }

func ref(name string) record.PodRef {
	return record.PodRef{Namespace: "default", Name: name, UID: "u-" + name}
}

func (s *scene) move(name string, from, to record.SubQueue) {
	s.Step(s.now, engine.Cycle{}, []engine.Effect{engine.Moved{Move: record.QueueMove{Pod: ref(name), From: from, To: to}}})
}

func (s *scene) bind(name string) {
	s.Step(s.now, engine.Cycle{}, []engine.Effect{engine.Bind{Pod: ref(name), Node: "n"}})
}

func (s *scene) answer(name string, outcome engine.BindOutcome) {
	s.Step(s.now, engine.BindDone{Pod: ref(name), Node: "n", Outcome: outcome}, nil)
}

func (s *scene) seen(name, node string) {
	s.Step(s.now, engine.PodSet{Pod: &cluster.Pod{Namespace: "default", Name: name, UID: cluster.UID("u-" + name),
		NodeName: node}}, nil)
}

// silence lets the API server answer no request from now on; the lease was renewed a second ago.
func (s *scene) silence() {
	s.server = Server{Since: s.now, Requests: 3, Oldest: "PUT /leases/a", Leads: true, Renewed: s.now - record.Second}
}

// pass lets seconds pass, with an iteration and a count in each.
func (s *scene) pass(seconds int, deciding bool) {
	for range seconds {
		s.now += record.Second
		s.Turn(s.now, time.Millisecond, deciding)
		s.Second(s.now, 0, 0, s.server)
	}
}

// causes returns what was found since the last call, in one line.
func (s *scene) causes() string {
	var all []string
	for _, f := range s.Take() {
		all = append(all, string(f.Cause))
	}
	return strings.Join(all, " ")
}

// TestCausesAreFound: each condition is found once it exceeds its limit, and not before; once for as long as it lasts.
func TestCausesAreFound(t *testing.T) {
	queued := func(s *scene) { s.move("a", record.Gone, record.Active) }
	bound := func(s *scene, name string) {
		s.bind(name)
		s.answer(name, engine.Bound)
	}
	for name, c := range map[string]struct {
		play func(*scene)
		want string
	}{
		"an idle scheduler":        {func(s *scene) { s.pass(100, true) }, ""},
		"an iteration at the edge": {func(s *scene) { s.Turn(s.now, 250*time.Millisecond, true) }, ""},
		"a slow iteration":         {func(s *scene) { s.Turn(s.now, 251*time.Millisecond, true) }, "slow-iteration"},
		"ten seconds without bind": {func(s *scene) { queued(s); s.pass(11, true) }, ""},
		"eleven":                   {func(s *scene) { queued(s); s.pass(12, true) }, "no-binds"},
		"a minute":                 {func(s *scene) { queued(s); s.pass(60, true) }, "no-binds"},
		"a pod that fits nowhere": {func(s *scene) {
			queued(s)
			s.move("a", record.Active, record.Unschedulable)
			s.pass(60, true)
		}, ""},
		"a pod that fits nowhere for long": {func(s *scene) {
			for range 60 {
				queued(s)
				s.move("a", record.Active, record.Backoff)
				s.pass(1, true)
			}
		}, ""},
		"a standby":        {func(s *scene) { queued(s); s.pass(60, false) }, ""},
		"after a pause":    {func(s *scene) { queued(s); s.pass(60, false); s.pass(11, true) }, ""},
		"binds in between": {func(s *scene) { queued(s); s.pass(8, true); bound(s, "b"); s.seen("b", "n"); s.pass(8, true) }, ""},
		"failing binds": {func(s *scene) {
			queued(s)
			s.pass(8, true)
			s.bind("b")
			s.answer("b", engine.BindFailed)
			s.pass(8, true)
		}, "no-binds"},
		"twice": {func(s *scene) {
			queued(s)
			s.pass(20, true)
			bound(s, "b")
			s.seen("b", "n")
			s.pass(20, true)
		}, "no-binds no-binds"},
		"a bind of 30 s":         {func(s *scene) { s.bind("a"); s.pass(30, false) }, ""},
		"a bind of 31 s":         {func(s *scene) { s.bind("a"); s.pass(31, false) }, "bind-unanswered"},
		"answered binds":         {func(s *scene) { bound(s, "a"); s.seen("a", "n"); s.pass(60, true) }, ""},
		"seen before the answer": {func(s *scene) { s.bind("a"); s.seen("a", "n"); s.answer("a", engine.Bound); s.pass(60, true) }, ""},
		"not seen for 5 s":       {func(s *scene) { bound(s, "a"); s.pass(5, true) }, ""},
		"not seen for 6 s":       {func(s *scene) { bound(s, "a"); s.pass(6, true) }, "watch-lag"},
		"another change is seen": {func(s *scene) { bound(s, "a"); s.seen("a", ""); s.pass(6, true) }, "watch-lag"},
		"gone before it is seen": {func(s *scene) { bound(s, "a"); s.Step(s.now, engine.PodGone{Pod: ref("a")}, nil); s.pass(60, true) }, ""},
		"a pod set aside": {func(s *scene) {
			s.Step(s.now, engine.Cycle{}, []engine.Effect{engine.Decided{Decision: record.Decision{Pod: ref("a"),
				Verdict: record.SetAside}}})
		}, "panic"},
		"a contained panic": {func(s *scene) {
			s.Step(s.now, engine.Cycle{}, []engine.Effect{engine.Trouble{Object: "n", What: "panic while handling engine.NodeSet"}})
		}, "panic"},
		"another trouble": {func(s *scene) {
			s.Step(s.now, engine.Cycle{}, []engine.Effect{engine.Trouble{Object: "default/a", What: "pod was bound by someone else"}})
		}, ""},
		"an overcommitted node": {func(s *scene) { s.Second(s.now, 1, 0, Server{}); s.Second(s.now, 1, 0, Server{}) }, "overcommitted-node"},
		"a second one":          {func(s *scene) { s.Second(s.now, 1, 0, Server{}); s.Second(s.now, 2, 0, Server{}) }, "overcommitted-node overcommitted-node"},
		"one less":              {func(s *scene) { s.Second(s.now, 2, 0, Server{}); s.Second(s.now, 1, 0, Server{}) }, "overcommitted-node"},
		"a pause": {func(s *scene) {
			s.Second(s.now, 0, 51*time.Millisecond, Server{})
			s.Second(s.now, 0, 50*time.Millisecond, Server{})
		}, "gc-pause"},
		"no answer for 4 s": {func(s *scene) { s.silence(); s.pass(4, true) }, ""},
		"no answer for 5 s": {func(s *scene) { s.silence(); s.pass(5, true) }, "api-unanswered"},
		"no answer for a minute, and what follows": {func(s *scene) {
			bound(s, "a")
			s.bind("b")
			queued(s)
			s.silence()
			s.pass(60, true)
		}, "api-unanswered"},
		"the watch was late before": {func(s *scene) { bound(s, "a"); s.pass(5, true); s.silence(); s.pass(1, true); s.pass(5, true) },
			"watch-lag api-unanswered"},
		"answers after a minute": {func(s *scene) {
			bound(s, "a")
			s.bind("b")
			queued(s)
			s.silence()
			s.pass(60, true)
			s.server = Server{Leads: true, Renewed: s.now}
			s.pass(4, true)
			s.answer("b", engine.Bound)
			s.seen("a", "n")
			s.seen("b", "n")
			s.pass(1, true)
		}, "api-unanswered"},
		"the watch stays silent": {func(s *scene) {
			bound(s, "a")
			s.silence()
			s.pass(10, true)
			s.server = Server{}
			s.pass(6, true)
		}, "api-unanswered watch-lag"},
		"twice no answer": {func(s *scene) {
			s.silence()
			s.pass(10, true)
			s.server = Server{}
			s.pass(1, true)
			s.silence()
			s.pass(10, true)
		}, "api-unanswered api-unanswered"},
		"a standby gets no answer": {func(s *scene) { s.silence(); s.server.Leads = false; s.pass(60, false) }, ""},
		"the process was stopped":  {func(s *scene) { s.pass(1, true); s.silence(); s.now += 60 * record.Second; s.pass(2, true) }, ""},
		"a lease of 5 s":           {func(s *scene) { s.server = Server{Leads: true, Renewed: s.now}; s.pass(5, true) }, ""},
		"a lease of 6 s":           {func(s *scene) { s.server = Server{Leads: true, Renewed: s.now}; s.pass(60, true) }, "lease-unrenewed"},
	} {
		s := newScene()
		c.play(s)
		if got := s.causes(); got != c.want {
			t.Errorf("%s: found %q, want %q", name, got, c.want)
		}
	}
}

// TestTheOldestBindIsNamed: of many binds without an answer, the detail has the oldest.
func TestTheOldestBindIsNamed(t *testing.T) {
	s := newScene()
	for i := range 5 {
		s.bind(fmt.Sprint("p", i))
		s.now += record.Second
	}
	s.pass(60, false)
	found := s.Take()
	if len(found) != 1 || found[0].Detail != "pod default/p0" || found[0].Took <= 30*time.Second {
		t.Errorf("found %+v", found)
	}
}

// TestNothingIsKeptOfFinishedBinds: the memory of the detector is that of the binds on their way.
func TestNothingIsKeptOfFinishedBinds(t *testing.T) {
	s := newScene()
	for i := range 100 {
		name := fmt.Sprint("p", i)
		s.bind(name)
		switch i % 4 {
		case 0:
			s.answer(name, engine.BindFailed)
		case 1:
			s.seen(name, "n")
			s.answer(name, engine.Bound)
		case 2:
			s.answer(name, engine.Bound)
			s.seen(name, "n")
		case 3:
			s.Step(s.now, engine.PodGone{Pod: ref(name)}, nil)
			s.answer(name, engine.PodVanished)
		}
	}
	if len(s.binds) != 0 || s.unanswered != 0 {
		t.Errorf("%d binds are kept, %d unanswered", len(s.binds), s.unanswered)
	}
}

// TestOneBundleForACauseInTenMinutes: causes do not share a quota, and what a user asks for has none.
func TestOneBundleForACauseInTenMinutes(t *testing.T) {
	q := Quota{Period: QuotaPeriod}
	at := func(c Cause, minute int) bool {
		return q.Allow(Finding{Cause: c, At: record.Time(minute) * 60 * record.Second})
	}
	got := []bool{at(Panic, 0), at(Panic, 9), at(NoBinds, 9), at(Panic, 10), at(Panic, 11), at(ByHand, 11), at(ByHand, 11)}
	if want := []bool{true, false, true, true, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("allowed %v, want %v", got, want)
	}
	if at(Panic, 5) == false {
		t.Error("after the clock was set back, no bundle is allowed")
	}
	q.Note(GCPause, 60*60*record.Second)
	if at(GCPause, 65) {
		t.Error("a bundle of a former process does not count")
	}
}

// TestALostLeaseSaysHowTheAPIServerAnswers: a lease is lost because the API server does not answer, or although it does.
func TestALostLeaseSaysHowTheAPIServerAnswers(t *testing.T) {
	s := newScene()
	s.pass(1, true)
	s.silence()
	s.now += 10 * record.Second
	silent, taken := s.Lost(s.now, s.server), s.Lost(s.now, Server{})
	if want := "the API server has not answered for 10.0 s: 3 requests without an answer, the oldest under way PUT /leases/a; " +
		"the lease was renewed 11.0 s ago"; silent.Detail != want || silent.Took != 11*time.Second || silent.Cause != LeaseLost {
		t.Errorf("%+v, want %s", silent, want)
	}
	if taken.Detail != "the API server answers" || taken.Took != 0 {
		t.Errorf("%+v", taken)
	}
}

// TestEveryCauseHasAText.
func TestEveryCauseHasAText(t *testing.T) {
	if len(Causes) != len(texts) {
		t.Errorf("%d causes, %d texts", len(Causes), len(texts))
	}
	for _, c := range Causes {
		if c.Text() == "" {
			t.Errorf("%s has no text", c)
		}
	}
}
