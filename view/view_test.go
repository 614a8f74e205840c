// SPDX-License-Identifier: Apache-2.0

package view

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/record"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// engineOf is an engine that knows one pod and one node.
type engineOf struct{ pod, node string }

func (e engineOf) ExplainPod(namespace, name string) (record.PodReport, bool) {
	return record.PodReport{Pod: ref(e.pod)}, namespace == "default" && name == e.pod
}
func (e engineOf) ExplainNode(name string) (record.NodeReport, bool) {
	return record.NodeReport{Name: name}, name == e.node
}
func (e engineOf) ExplainGang(namespace, name string) (record.GangReport, bool) {
	return record.GangReport{Name: namespace + "/" + name, Quorum: 3}, namespace+"/"+name == "ml/train"
}
func (e engineOf) WhatIfPod(_, name string, conditions []string) (record.WhatIf, error) {
	if name != e.pod {
		return record.WhatIf{}, &record.Refusal{About: true, Message: "no such pod"}
	}
	return e.WhatIfGang("", "", conditions)
}
func (engineOf) OtherNamespace(namespace string, conditions []string) string {
	for _, c := range conditions {
		if other, is := strings.CutPrefix(c, "of "); is && other != namespace {
			return other
		}
	}
	return ""
}
func (e engineOf) WhatIfGang(_, _ string, conditions []string) (r record.WhatIf, err error) {
	for _, c := range conditions {
		switch c {
		case "missing":
			return r, &record.Refusal{Missing: true, Message: "there is no such node"}
		case "unreadable":
			return r, &record.Refusal{Message: "want one of"}
		case "broken":
			return r, errors.New("it panicked")
		}
		r.If = append(r.If, record.Supposed{If: c})
	}
	return r, nil
}
func (e engineOf) GangList() record.GangList {
	waiting := ref("train-0")
	return record.GangList{Counts: record.GangCounts{Gangs: 2, Waiting: 1}, Gangs: []record.GangEntry{
		{Name: "default/train", Waiting: 4, Pod: &waiting}, {Name: "shop/serve", Bound: 2}}}
}
func (e engineOf) QueueReport() record.QueueReport {
	return record.QueueReport{Counts: record.QueueCounts{Active: 1}}
}

func asks(e Explainer) Asker {
	return AskFunc(func(_ context.Context, f func(Explainer)) error { f(e); return nil })
}

func ref(name string) record.PodRef {
	return record.PodRef{Namespace: "default", Name: name, UID: "uid-" + name}
}

func move(name string) record.QueueMove {
	return record.QueueMove{Pod: ref(name), From: record.Gone, To: record.Active, Event: "PodAdd"}
}

func get(t *testing.T, h http.Handler, path string, into any) int {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if into != nil {
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v in %q", path, err, w.Body)
		}
	}
	return w.Code
}

// TestPastOfPod: a report gets the newest decision and the moves of that pod, and of no other; and besides the newest
// the one that evicted others for it, if it is another. Mutants: that of a pod is forgotten with the next decision;
// the same decision is returned twice.
func TestPastOfPod(t *testing.T) {
	v := New(Options{Asker: asks(engineOf{"a", "n1"})})
	v.Moved(move("a"))
	v.Moved(move("b"))
	for i, name := range []string{"a", "a", "b"} {
		d := record.Decision{Number: uint64(i + 1), Pod: ref(name)}
		if i != 1 {
			d.Preemption = &record.Preemption{Node: "n1"}
		}
		v.Decided(d)
	}
	var got record.PodReport
	if code := get(t, v.Handler(), "/kumiki/v1/why/pod/default/a", &got); code != 200 {
		t.Fatalf("code %d", code)
	}
	if got.Last == nil || got.Last.Number != 2 || len(got.Moves) != 1 || got.Moves[0].Pod.Name != "a" {
		t.Errorf("got last %+v, moves %+v", got.Last, got.Moves)
	}
	if got.Evicted == nil || got.Evicted.Number != 1 {
		t.Errorf("evicted for it: %+v, want decision 1", got.Evicted)
	}
	v.asker = asks(engineOf{"b", "n1"})
	if b, _, _ := v.Pod(t.Context(), "default", "b"); b.Last == nil || b.Last.Number != 3 || b.Evicted != nil {
		t.Errorf("of b: %+v, evicted for it %+v", b.Last, b.Evicted)
	}
	var list DecisionList
	get(t, v.Handler(), "/kumiki/v1/decisions?pod=default/a&limit=1", &list)
	if len(list.Items) != 1 || list.Items[0].Number != 2 {
		t.Errorf("decisions: %+v", list)
	}
}

// TestWhatIf: conditions reach the engine in their order, each once. Mutant: only the first.
func TestWhatIf(t *testing.T) {
	v := New(Options{Asker: asks(engineOf{"a", "n1"})})
	var got record.WhatIf
	code := get(t, v.Handler(), Prefix+"whatif/pod/default/a?if=drain+n1&if=add-nodes+3+like+node%2Fn1", &got)
	if code != 200 || len(got.If) != 2 || got.If[0].If != "drain n1" || got.If[1].If != "add-nodes 3 like node/n1" {
		t.Errorf("code %d, %+v", code, got)
	}
}

// TestAPauseIsShown with what waits, and not with a pod that has its node. It would fail with reports that leave it out.
func TestAPauseIsShown(t *testing.T) {
	h := New(Options{Asker: asks(engineOf{"p", "n"}),
		Paused: func() *record.Pause { return &record.Pause{Reason: "upgrade"} }}).Handler()
	var queue record.QueueReport
	var pod record.PodReport
	get(t, h, Prefix+"queue", &queue)
	get(t, h, Prefix+"why/pod/default/p", &pod)
	if queue.Paused == nil || pod.Paused == nil || queue.Paused.Reason != "upgrade" || pod.Paused.Reason != "upgrade" {
		t.Errorf("paused: queue %+v, pod %+v", queue.Paused, pod.Paused)
	}
}

// TestRefusals: each refusal is a Status that says why.
func TestRefusals(t *testing.T) {
	v := New(Options{Asker: asks(engineOf{"a", "n1"})})
	for path, want := range map[string]struct {
		code   int
		reason metav1.StatusReason
	}{
		"/kumiki/v1/why/pod/default/b":                  {404, metav1.StatusReasonNotFound},
		"/kumiki/v1/why/gang/ml/other":                  {404, metav1.StatusReasonNotFound},
		"/kumiki/v1/why/node/n2":                        {404, metav1.StatusReasonNotFound},
		"/kumiki/v1/whatif/pod/default/b":               {404, metav1.StatusReasonNotFound},
		"/kumiki/v1/whatif/node/default/n1":             {404, metav1.StatusReasonNotFound},
		"/kumiki/v1/whatif/pod/default/a?if=missing":    {422, metav1.StatusReasonInvalid},
		"/kumiki/v1/whatif/gang/ml/train?if=unreadable": {400, metav1.StatusReasonBadRequest},
		"/kumiki/v1/whatif/pod/default/a?if=broken":     {500, metav1.StatusReasonInternalError},
		"/kumiki/v1/decisions?limit=0":                  {400, metav1.StatusReasonBadRequest},
		"/kumiki/v1/queue/watch?since=first":            {400, metav1.StatusReasonBadRequest},
	} {
		var s metav1.Status
		if code := get(t, v.Handler(), path, &s); code != want.code || s.Reason != want.reason || s.Message == "" {
			t.Errorf("%s: got %d %+v", path, code, s)
		}
	}
	stopped := New(Options{Asker: AskFunc(func(context.Context,
		func(Explainer)) error {
		return errors.New("the loop has ended")
	})})
	var s metav1.Status
	if code := get(t, stopped.Handler(), "/kumiki/v1/queue", &s); code != 503 ||
		s.Message != "the scheduler does not answer: the loop has ended" {
		t.Errorf("stopped: %d %+v", code, s)
	}
}

// TestReport: what read gives, or why it gives nothing; nothing but reading is answered.
// Fault: an error that reads like an empty report.
func TestReport(t *testing.T) {
	var failed error
	server := httptest.NewServer(Report(func(context.Context) (any, error) {
		return map[string]int{"pods": 3},
			failed
	}))
	t.Cleanup(server.Close)
	for _, tt := range []struct {
		method string
		err    error
		code   int
		want   string
	}{
		{"GET", nil, 200, `{"pods":3}`}, {"GET", errors.New("gone"), 503, "gone"}, {"POST", nil, 405, ""},
	} {
		failed = tt.err
		request, err := http.NewRequestWithContext(t.Context(), tt.method, server.URL+Prefix+"shadow", nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != tt.code || !strings.Contains(string(text), tt.want) {
			t.Errorf("%s: %v, %d %s, want %d %s", tt.method, err, reply.StatusCode, text, tt.code, tt.want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// TestDecisionsAreCopied: the engine may use its slices again after Decided.
func TestDecisionsAreCopied(t *testing.T) {
	v := New(Options{})
	reasons := []record.Reason{{Plugin: "NodeName", Examples: []string{"n1"}}}
	v.Decided(record.Decision{Pod: ref("a"), Reasons: reasons})
	reasons[0].Plugin, reasons[0].Examples[0] = "other", "n2"
	if got := v.Decisions("", 1)[0].Reasons[0]; got.Plugin != "NodeName" || got.Examples[0] != "n1" {
		t.Errorf("the kept decision changed: %+v", got)
	}
}

// stream opens the stream of moves and returns a function that reads the next line.
func stream(t *testing.T, url string) (next func() MoveLine) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		resp.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	lines := bufio.NewScanner(resp.Body)
	return func() MoveLine {
		t.Helper()
		for lines.Scan() {
			if len(lines.Bytes()) == 0 {
				continue
			}
			var line MoveLine
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			return line
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return MoveLine{}
	}
}

// TestStreamResumes: a reader that comes back with its number gets everything since, in order, and then what is new.
func TestStreamResumes(t *testing.T) {
	v := New(Options{Moves: 8})
	server := httptest.NewServer(v.Handler())
	t.Cleanup(server.Close) // after the streams below have ended, for which it waits
	url := server.URL + Prefix + "queue/watch"

	next := stream(t, url)
	hello := next()
	v.Moved(move("a"))
	if got := next(); got.Seq != 1 || got.Move.Pod.Name != "a" {
		t.Fatalf("first move: %+v", got)
	}
	v.Moved(move("b"))
	v.Moved(move("c"))

	again := stream(t, url+"?epoch="+hello.Epoch+"&since=1")
	again()
	for i, want := range []string{"b", "c"} {
		if got := again(); got.Seq != uint64(i+2) || got.Move.Pod.Name != want {
			t.Fatalf("resumed: %+v, want %s", got, want)
		}
	}
	v.Moved(move("d"))
	if got := again(); got.Move.Pod.Name != "d" {
		t.Fatalf("after catching up: %+v", got)
	}

	// Another process assigned that number: the reader gets all that is kept, and a notice of the gap.
	other := stream(t, url+"?epoch=other&since=900")
	if got := other(); !got.Lost || got.Epoch != hello.Epoch {
		t.Fatalf("other epoch: %+v", got)
	}
	if got := other(); got.Seq != 1 {
		t.Fatalf("other epoch goes on with %+v", got)
	}
}

// TestStreamTellsLoss: what fell out of the ring is named as lost, and reading goes on with the oldest that is left.
func TestStreamTellsLoss(t *testing.T) {
	v := New(Options{Moves: 4})
	for i := range 10 {
		v.Moved(move(fmt.Sprint(i)))
	}
	lines, next := v.movesAfter(2)
	if len(lines) != 5 || !lines[0].Lost || lines[0].Seq != 6 || lines[1].Seq != 7 || next != 10 {
		t.Errorf("got %+v, next %d", lines, next)
	}
}

// TestStreamsAreBounded: a scheduler is not slowed down by any number of readers.
func TestStreamsAreBounded(t *testing.T) {
	v := New(Options{})
	for range maxWatchers {
		if _, _, ok := v.watch(); !ok {
			t.Fatal("refused too early")
		}
	}
	var s metav1.Status
	if code := get(t, v.Handler(), "/kumiki/v1/queue/watch", &s); code != 429 {
		t.Errorf("got %d %+v", code, s)
	}
}

// TestRingAgainstSlice: the ring keeps what the tail of a plain slice holds, and the index of pods follows it. The
// mutant is an index that keeps entries of decisions which fell out.
func TestRingAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		v := New(Options{Decisions: size})
		var all []record.Decision
		for range rapid.IntRange(0, 20).Draw(t, "decisions") {
			d := record.Decision{Number: uint64(len(all) + 1),
				Pod: ref(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "pod"))}
			if rapid.Bool().Draw(t, "evicts") {
				d.Preemption = &record.Preemption{Node: "n"}
			}
			v.Decided(d)
			all = append(all, d)
		}
		kept := all[max(0, len(all)-size):]
		// UID -> number of the newest kept decision, and that which evicts
		last, evicts := map[string]uint64{}, map[string]uint64{}
		for _, d := range kept {
			if last[d.Pod.UID] = d.Number; d.Preemption.Evicts() {
				evicts[d.Pod.UID] = d.Number
			}
		}
		got := v.Decisions("", 100)
		if len(got) != len(kept) {
			t.Fatalf("kept %d, want %d", len(got), len(kept))
		}
		for i, d := range got {
			if want := kept[len(kept)-1-i]; d.Number != want.Number {
				t.Fatalf("decision %d is number %d, want %d", i, d.Number, want.Number)
			}
		}
		if !maps.Equal(v.mu.lastOf, last) || !maps.Equal(v.mu.evictedBy, evicts) {
			t.Fatalf("indexes %v and %v, want %v and %v", v.mu.lastOf, v.mu.evictedBy, last, evicts)
		}
	})
}
