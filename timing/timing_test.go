// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/record"
)

var web = record.PodRef{Namespace: "shop", Name: "web", UID: "1"}

// step runs one step that ends at a time.
func step(r *Recorder, ended record.Time, does func()) {
	r.BeginStep()
	does()
	r.EndStep(ended)
}

func move(r *Recorder, to record.SubQueue, event string, at record.Time) {
	r.Moved(&record.QueueMove{Pod: web, To: to, Event: event}, at)
}

// words writes the spans of a journey in short.
func words(j *record.Journey) string {
	var out []string
	for _, s := range j.Spans {
		w := fmt.Sprintf("%s@%d+%d", s.Phase, s.Start, s.Took)
		if s.Event != "" {
			w += ">" + s.Event
		}
		if len(s.Plugins) > 0 {
			w += "[" + strings.Join(s.Plugins, " ") + "]"
		}
		out = append(out, w)
	}
	return strings.Join(out, " ")
}

// decidedAt brings a pod from its observation at 100 to a requested bind at 200.
func decidedAt200(r *Recorder) {
	step(r, 112, func() {
		r.Observed(web, "", 100, 110, false)
		move(r, record.Active, "UnscheduledPodAdd", 110)
	})
	step(r, 150, func() {
		move(r, record.InFlight, "Popped", 120)
		move(r, record.Unschedulable, "ScheduleAttemptFailure", 150)
		r.Decided(&record.Decision{Pod: web, Verdict: record.DoesNotFit, Plugins: []string{"Fit", "Taints"}}, 150)
	})
	step(r, 171, func() { move(r, record.Active, "NodeAdd", 170) })
	step(r, 200, func() {
		move(r, record.InFlight, "Popped", 180)
		move(r, record.Gone, "Done", 200)
		r.Decided(&record.Decision{Pod: web, Verdict: record.Placed, Winner: &record.Candidate{Node: "n1"}}, 200)
		r.Binding(web, "n1", 200)
	})
}

const untilBind = "inbox@100+10 active@110+10>Popped deciding@120+30>ScheduleAttemptFailure " +
	"unschedulable@150+20>NodeAdd[Fit Taints] active@170+10>Popped deciding@180+20"

// TestOnePod: two attempts and a bind, with what ended each phase and which plugins were to blame.
func TestOnePod(t *testing.T) {
	r := New(Options{})
	decidedAt200(r)
	call := Call{Begun: 210, Released: 230, FirstByte: 260, Request: ID{1}}
	step(r, 271, func() { r.BindEnded(web, call, true, 270) })
	j := r.Read(Query{Limit: 9}, 0, 0).Journeys[0]
	if got, want := words(&j), untilBind+" bind-queued@200+10 limited@210+20 sent@230+30 answered@260+10 confirming@270+0"; got != want {
		t.Errorf("before the watch shows it:\ngot  %s\nwant %s", got, want)
	}
	step(r, 292, func() { r.Bound(web, "n1", 280, 290) })
	j = r.Read(Query{Limit: 9}, 0, 0).Journeys[0]
	if got, want := words(&j), untilBind+" bind-queued@200+10 limited@210+20 sent@230+30 answered@260+10 confirming@270+10"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if j.End != record.EndBound || j.Attempts != 2 || *j.WatchLag != 20 || j.Node != "n1" ||
		j.BindRequest != "01000000-0000-0000-0000-000000000000" {
		t.Errorf("%+v, lag %d", j, *j.WatchLag)
	}
}

// TestTheWatchIsFasterThanTheAnswer: the journey ends when the watch showed the pod, in whatever order the loop takes
// both, and the lag is negative.
func TestTheWatchIsFasterThanTheAnswer(t *testing.T) {
	call := Call{Begun: 210, Released: 210, FirstByte: 260}
	want := untilBind + " bind-queued@200+10 sent@210+40"
	for _, answerFirst := range []bool{true, false} {
		r := New(Options{})
		decidedAt200(r)
		if answerFirst {
			step(r, 270, func() { r.BindEnded(web, call, true, 270) })
		}
		step(r, 271, func() { r.Bound(web, "n1", 250, 271) })
		if !answerFirst {
			step(r, 272, func() { r.BindEnded(web, call, true, 272) })
		}
		j := r.Read(Query{Limit: 9}, 0, 0).Journeys[0]
		if words(&j) != want || j.Ended != 250 || *j.WatchLag != -10 {
			t.Errorf("answer first %v: %s, ended %d, lag %v", answerFirst, words(&j), j.Ended, j.WatchLag)
		}
	}
}

// TestAWithdrawnBind was queued until the end, and the pod goes on.
func TestAWithdrawnBind(t *testing.T) {
	r := New(Options{})
	decidedAt200(r)
	step(r, 221, func() {
		r.BindEnded(web, Call{}, false, 220)
		move(r, record.Active, "Recalled", 220)
	})
	step(r, 240, func() { r.Gone(web, 235, 240) })
	j := r.Read(Query{Limit: 9}, 0, 0).Journeys[0]
	if got, want := words(&j), untilBind+" bind-queued@200+20 active@220+15"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if j.End != record.EndGone {
		t.Errorf("ended as %s", j.End)
	}
}

// TestAPodThatNeverWaited has no journey: it is being deleted, say.
func TestAPodThatNeverWaited(t *testing.T) {
	r := New(Options{})
	step(r, 11, func() { r.Observed(web, "", 5, 10, false) })
	if out := r.Read(Query{Limit: 9}, 0, 0); len(out.Journeys) != 0 || r.byUID.used != 0 {
		t.Errorf("%+v", out.Journeys)
	}
}

// TestAPodThatAnotherSchedulerBinds ends where it was.
func TestAPodThatAnotherSchedulerBinds(t *testing.T) {
	r := New(Options{})
	step(r, 112, func() {
		r.Observed(web, "", 100, 110, true)
		move(r, record.Active, "UnscheduledPodAdd", 110)
	})
	step(r, 130, func() { r.Bound(web, "n2", 125, 130) })
	j := r.Read(Query{Limit: 9}, 0, 0).Journeys[0]
	if words(&j) != "inbox@100+10 active@110+15" || j.End != record.EndForeign || j.Node != "n2" || j.WatchLag != nil {
		t.Errorf("%s: %+v", words(&j), j)
	}
}

// TestGang: its pods share the phases of its unit, and it has milestones.
func TestGang(t *testing.T) {
	r := New(Options{})
	a := record.PodRef{Namespace: "ml", Name: "a", UID: "a"}
	b := record.PodRef{Namespace: "ml", Name: "b", UID: "b"}
	unit := func(to record.SubQueue, event, hint string, at record.Time) {
		r.Moved(&record.QueueMove{Pod: a, Gang: "ml/train", To: to, Event: event, Hint: hint}, at)
	}
	step(r, 10, func() {
		r.Observed(a, "ml/train", 5, 10, false)
		unit(record.Gated, "UnscheduledPodAdd", "Gang", 10)
	})
	step(r, 20, func() { r.Observed(b, "ml/train", 15, 20, false) }) // joins without a move
	step(r, 30, func() { unit(record.Active, "GangChanged", "", 30) })
	step(r, 60, func() {
		unit(record.InFlight, "Popped", "", 40)
		unit(record.Gone, "Done", "", 60)
		for _, p := range []record.PodRef{a, b} {
			r.Decided(&record.Decision{Pod: p, Verdict: record.Placed, Gang: &record.GangPart{Name: "ml/train", Quorum: 2}}, 60)
			r.Binding(p, "n", 60)
		}
	})
	for i, p := range []record.PodRef{a, b} {
		at := record.Time(80 + 10*i)
		step(r, at, func() { r.BindEnded(p, Call{Begun: 61, Released: 61, FirstByte: 70}, true, at) })
		step(r, at+5, func() { r.Bound(p, "n", at+2, at+5) })
	}
	out := r.Read(Query{Limit: 9}, 0, 0)
	want := []string{
		"inbox@5+5 gated@10+20>GangChanged[Gang] active@30+10>Popped deciding@40+20 bind-queued@60+1 sent@61+9 answered@70+10 confirming@80+2",
		"inbox@15+5 gated@20+10>GangChanged[Gang] active@30+10>Popped deciding@40+20 bind-queued@60+1 sent@61+9 answered@70+20 confirming@90+2",
	}
	for i := range out.Journeys {
		if got := words(&out.Journeys[i]); got != want[i] || out.Journeys[i].Gang != "ml/train" {
			t.Errorf("got  %s\nwant %s", got, want[i])
		}
	}
	milestones := record.GangTiming{Gang: "ml/train", FirstMember: 5, Quorum: 30, Placed: 60, FirstBound: 82, Whole: 92}
	if len(out.Gangs) != 1 || out.Gangs[0] != milestones || len(r.gangs) != 0 {
		t.Errorf("gangs %+v, want %+v", out.Gangs, milestones)
	}
}

// TestEviction: decided, sent, terminating and gone, each with the last victim but for the first delete.
func TestEviction(t *testing.T) {
	r := New(Options{})
	x, y := record.PodRef{UID: "x"}, record.PodRef{UID: "y"}
	e := record.EvictionTiming{For: web, Node: "n", Decision: 7, Victims: 2, Requested: 10}
	step(r, 10, func() { r.EvictionRequested(e, []record.PodRef{x, y}) })
	step(r, 16, func() { r.Terminating(x, 15, 16); r.Terminating(record.PodRef{UID: "z"}, 15, 16) })
	step(r, 17, func() { r.Terminating(x, 16, 17) }) // an update
	step(r, 20, func() { r.Gone(x, 18, 20) })
	step(r, 29, func() { r.Terminating(y, 28, 29) })
	step(r, 30, func() { r.EvictionEnded(web, 7, "", []Call{{Begun: 11, Released: 13}, {Begun: 26}}, 30) })
	if n := len(r.evictions); n != 1 {
		t.Errorf("%d evictions under way before the last victim is gone", n)
	}
	step(r, 50, func() { r.Gone(y, 45, 50) })
	e.Sent, e.Terminating, e.Gone, e.Deleted = 13, 28, 45, 30
	e.Pods = []record.VictimTiming{{Pod: x, Sent: 13, Terminating: 15, Gone: 18}, {Pod: y, Sent: 26, Terminating: 28, Gone: 45}}
	if got := r.Read(Query{Limit: 9}, 0, 0).Evictions; len(got) != 1 || !reflect.DeepEqual(got[0], e) || len(r.victims)+len(r.evictions) != 0 {
		t.Errorf("%+v", got)
	}
	e = record.EvictionTiming{For: web, Decision: 8, Victims: 1, Requested: 60}
	step(r, 60, func() { r.EvictionRequested(e, []record.PodRef{x}) })
	step(r, 61, func() { r.EvictionEnded(web, 8, "denied", nil, 61) })
	if got := r.Read(Query{Limit: 1}, 0, 0).Evictions; len(got) != 1 || got[0].Failed != "denied" || got[0].Ended() != 61 || len(r.victims) != 0 {
		t.Errorf("a failed one: %+v, %d victims waited for", got, len(r.victims))
	}
}

// TestOverwrittenSpansAreCounted: the journeys that lost some say so, and none shows the spans of another.
func TestOverwrittenSpansAreCounted(t *testing.T) {
	r := New(Options{Spans: blockSize})
	for i := range 300 {
		p := record.PodRef{Namespace: "shop", Name: fmt.Sprint("p", i), UID: fmt.Sprint(i)}
		at := record.Time(1000 * (i + 1))
		step(r, at+2, func() {
			r.Observed(p, "", at, at+1, false)
			r.Moved(&record.QueueMove{Pod: p, To: record.Active}, at+1)
		})
		for k := range record.Time(4) {
			step(r, at+9, func() { r.Moved(&record.QueueMove{Pod: p, To: record.Gated}, at+10+2*k) })
		}
		step(r, at+99, func() { r.Gone(p, at+90, at+99) })
	}
	out := r.Read(Query{Limit: 1000}, 0, 0)
	if want := uint64(300*6 - blockSize); out.Lost.Spans != want {
		t.Errorf("%d spans lost, want %d", out.Lost.Spans, want)
	}
	lost := 0
	for i := range out.Journeys {
		j := &out.Journeys[i]
		if err := j.Check(); err != nil {
			t.Error(err)
		}
		if lost += j.LostSpans; len(j.Spans)+j.LostSpans != 6 {
			t.Errorf("pod %s has %d spans and lost %d, want 6", j.Pod.Name, len(j.Spans), j.LostSpans)
		}
	}
	if uint64(lost) != out.Lost.Spans {
		t.Errorf("journeys lost %d spans", lost)
	}
}

// TestQueries: by pod, by namespace, by time, and bounded.
func TestQueries(t *testing.T) {
	r := New(Options{})
	for i := range 20 {
		p := record.PodRef{Namespace: fmt.Sprint("ns", i%2), Name: fmt.Sprint("p", i), UID: fmt.Sprint(i)}
		at := record.Time(100 * (i + 1))
		step(r, at+2, func() {
			r.Observed(p, "", at, at+1, false)
			r.Moved(&record.QueueMove{Pod: p, To: record.Active}, at+1)
		})
		if i < 10 {
			step(r, at+50, func() { r.Gone(p, at+40, at+50) })
		}
		r.Requested(Request{ID: ID{byte(i)}, Verb: "POST", Start: at,
			Path: "/api/v1/namespaces/" + p.Namespace + "/pods/" + p.Name + "/binding"})
	}
	for _, c := range []struct {
		q                  Query
		journeys, requests []string
	}{
		{Query{Namespace: "ns1", Name: "p3", Limit: 5}, []string{"p3"}, []string{"p3"}},
		{Query{Namespace: "ns0", Name: "p3", Limit: 5}, nil, nil},
		{Query{Namespace: "ns0", Limit: 2}, []string{"p6", "p8", "p10", "p12"}, []string{"p16", "p18"}},
		{Query{Limit: 100, Since: 1000}, []string{"p9", "p10", "p11", "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19"},
			[]string{"p9", "p10", "p11", "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19"}},
	} {
		out := r.Read(c.q, 0, 0)
		var journeys, requests []string
		for _, j := range out.Journeys {
			journeys = append(journeys, j.Pod.Name)
		}
		for _, q := range out.Requests {
			requests = append(requests, q.Name)
		}
		if !reflect.DeepEqual(journeys, c.journeys) || !reflect.DeepEqual(requests, c.requests) {
			t.Errorf("%+v: journeys %v, want %v; requests %v, want %v", c.q, journeys, c.journeys, requests, c.requests)
		}
	}
}

// TestRequestPaths: what a request is about.
func TestRequestPaths(t *testing.T) {
	for path, want := range map[string][3]string{
		"/api/v1/namespaces/ns/pods/p/binding":                         {"pods/binding", "ns", "p"},
		"/api/v1/namespaces/ns/pods/p":                                 {"pods", "ns", "p"},
		"/apis/events.k8s.io/v1/namespaces/ns/events":                  {"events", "ns", ""},
		"/api/v1/persistentvolumes/pv-1":                               {"persistentvolumes", "", "pv-1"},
		"/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/k": {"leases", "kube-system", "k"},
		"/healthz": {"/healthz", "", ""},
		"/api/v1":  {"/api/v1", "", ""},
		"":         {"", "", ""},
	} {
		q := Request{Path: path}
		if got := q.report(); [3]string{got.Resource, got.Namespace, got.Name} != want {
			t.Errorf("%s: %q, %q, %q", path, got.Resource, got.Namespace, got.Name)
		}
	}
}

// TestHistogramBounds: each bound is inclusive.
func TestHistogramBounds(t *testing.T) {
	var h histogram
	h.observe(-5)
	h.observe(0)
	for _, b := range bounds {
		h.observe(b)
		h.observe(b + 1)
	}
	out := h.report()
	want := []uint64{3}
	for range Buckets {
		want = append(want, 2)
	}
	want[Buckets] = 1
	if !reflect.DeepEqual(out.Counts, want) || out.Count != 2+2*Buckets || out.Max != bounds[Buckets-1]+1 {
		t.Errorf("%+v, want %v", out, want)
	}
}

// TestNamesAreBounded: too many of them are one.
func TestNamesAreBounded(t *testing.T) {
	n := newNames()
	for i := range maxNames + 10 {
		n.number(fmt.Sprint("name", i))
	}
	if len(n.text) != maxNames || n.number("one more") != tooMany || n.setOf([]string{"a", "b"}) != tooMany {
		t.Errorf("%d names", len(n.text))
	}
}

// TestOnePodTwoEvictions: both wait for it, and the one that fails waits no longer.
func TestOnePodTwoEvictions(t *testing.T) {
	r := New(Options{})
	x := record.PodRef{UID: "x"}
	for d := range uint64(3) {
		step(r, 10, func() {
			r.EvictionRequested(record.EvictionTiming{For: web, Decision: d, Victims: 1, Requested: 10}, []record.PodRef{x})
		})
	}
	step(r, 12, func() { r.EvictionEnded(web, 1, "denied", nil, 12) })
	step(r, 13, func() { r.EvictionEnded(web, 0, "", nil, 13); r.EvictionEnded(web, 2, "", nil, 13) })
	step(r, 20, func() { r.Gone(x, 18, 20) })
	got := map[uint64]record.Time{}
	for _, e := range r.Read(Query{Limit: 9}, 0, 0).Evictions {
		got[e.Decision] = e.Ended()
	}
	if want := map[uint64]record.Time{0: 18, 1: 12, 2: 18}; !reflect.DeepEqual(got, want) || len(r.victims)+len(r.evictions) != 0 {
		t.Errorf("ended at %v, want %v; %d victims waited for", got, want, len(r.victims))
	}
}

// TestManyVictims: the first ones are kept one by one, and the eviction waits for all.
func TestManyVictims(t *testing.T) {
	r := New(Options{})
	var victims []record.PodRef
	for i := range maxVictims + 5 {
		victims = append(victims, record.PodRef{UID: fmt.Sprint(i)})
	}
	step(r, 10, func() {
		r.EvictionRequested(record.EvictionTiming{For: web, Victims: len(victims), Requested: 10}, victims)
		r.EvictionEnded(web, 0, "", make([]Call, len(victims)), 11)
	})
	for i, v := range victims {
		at := record.Time(20 + i)
		step(r, at, func() { r.Gone(v, at, at) })
	}
	got := r.Read(Query{Limit: 9}, 0, 0).Evictions
	if want := record.Time(20 + len(victims) - 1); len(got) != 1 || got[0].Gone != want || got[0].Terminating != want || len(got[0].Pods) != maxVictims {
		t.Errorf("%+v, want it gone at %d", got, want)
	}
}

// TestWhatBelongsToOnePod: its gang, the evictions for it and its gang, and that of itself.
func TestWhatBelongsToOnePod(t *testing.T) {
	r := New(Options{})
	a, b := record.PodRef{Namespace: "ml", Name: "a", UID: "a"}, record.PodRef{Namespace: "ml", Name: "b", UID: "b"}
	low := record.PodRef{Namespace: "shop", Name: "low", UID: "l"}
	step(r, 10, func() {
		for _, p := range []record.PodRef{a, b} {
			r.Observed(p, "ml/train", 5, 10, false)
			r.Moved(&record.QueueMove{Pod: p, Gang: "ml/train", To: record.Active}, 10)
		}
		r.Observed(web, "", 5, 10, false)
		r.Moved(&record.QueueMove{Pod: web, To: record.Active}, 10)
		r.EvictionRequested(record.EvictionTiming{For: a, Gang: "ml/train", Decision: 1, Requested: 10}, []record.PodRef{low})
		r.EvictionRequested(record.EvictionTiming{For: low, Decision: 2, Requested: 10}, []record.PodRef{web})
	})
	for name, want := range map[string]string{"ml/b": "1 1", "shop/web": "0 2", "shop/low": "0 1 2", "ml/c": "0", "shop/a": "0"} {
		namespace, pod, _ := strings.Cut(name, "/")
		out := r.Read(Query{Namespace: namespace, Name: pod, Limit: 9}, 0, 0)
		got := fmt.Sprint(len(out.Gangs))
		for _, e := range out.Evictions {
			got += fmt.Sprint(" ", e.Decision)
		}
		if got != want {
			t.Errorf("%s: gangs and evictions %s, want %s", name, got, want)
		}
	}
}
