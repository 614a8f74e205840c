// SPDX-License-Identifier: Apache-2.0

package text

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/journey"
	"github.com/kumiki-scheduler/kumiki/record"
)

var update = flag.Bool("update", false, "write the pages under testdata anew")

const now = 1000 * record.Second

func pod(name string) record.PodRef {
	return record.PodRef{Namespace: "shop", Name: name, UID: "uid-" + name}
}

// TestATimeInTheFutureIsNow: the clocks of the API server and of the scheduler may be an hour apart.
func TestATimeInTheFutureIsNow(t *testing.T) {
	for from, want := range map[record.Time]string{now + 3600*record.Second: "0s", now: "0s", now - 3600*record.Second: "60m"} {
		if got := Ago(from, now); got != want {
			t.Errorf("from %d to %d it is %s, want %s", from, now, got, want)
		}
	}
}

func tooBig() record.PodReport {
	return record.PodReport{
		At: now, Revision: 77, Pod: pod("big"), Profile: "default-scheduler", Created: now - 60*record.Second,
		Where: record.Unschedulable, Since: now - 12*record.Second, FlushAt: now + 288*record.Second,
		Attempts: 3, Unschedulable: 3,
		Requests: []record.ResourceAmount{{Resource: "cpu", Value: 64000}, {Resource: "memory", Value: 300 << 30},
			{Resource: "hugepages-2Mi", Value: 100 << 20}},
		Fit: &record.Fit{
			Nodes: 100,
			Reasons: []record.Reason{
				{Plugin: "NodeResourcesFit", Reason: "Insufficient cpu", Nodes: 90,
					Examples: []string{"node-0", "node-1", "node-2"}},
				{Plugin: "TaintToleration", Reason: "node(s) had untolerated taint(s)", Nodes: 10, Unresolvable: 10,
					Examples: []string{"gpu-0"}},
			},
			Remedies: []record.Remedy{
				{Plugin: "NodeResourcesFit", Do: "free cpu on node-7", Node: "node-7", Resource: "cpu", Need: 64000,
					Free: 6500, Short: 57500, Nodes: 90},
				{Plugin: "TaintToleration", Do: "tolerate the taint dedicated=gpu:NoSchedule", Node: "gpu-0",
					Nodes: 10, Also: []string{"NodeResourcesFit"}},
			},
		},
		WaitsFor: []record.WaitsFor{
			{Plugin: "NodeResourcesFit", Events: []string{"AssignedPodDelete", "NodeAdd"}},
			{Plugin: "TaintToleration", Events: []string{"NodeAdd", "NodeUpdateNodeTaint"}},
		},
		Last: &record.Decision{At: now - 12*record.Second, Verdict: record.DoesNotFit,
			Message: "0/100 nodes are available: 10 node(s) had untolerated taint(s), 90 Insufficient cpu."},
		Moves: []record.QueueMove{
			{At: now - 60*record.Second, Pod: pod("big"), From: record.Gone, To: record.Active, Event: "PodAdd"},
			{At: now - 12*record.Second, Pod: pod("big"), From: record.InFlight, To: record.Unschedulable,
				Event: "ScheduleAttemptFailure", Cause: "no node fits"},
		},
	}
}

func placed() record.PodReport {
	return record.PodReport{
		At: now, Pod: pod("web"), Profile: "default-scheduler", Where: record.Gone, Node: "node-4",
		Requests: []record.ResourceAmount{{Resource: "cpu", Value: 500}},
		Last: &record.Decision{
			Number: 9, At: now - 500*record.Second/1000, Verdict: record.Placed, Attempt: 1, Nodes: 100, Feasible: 97,
			Path: record.Ranked,
			Winner: &record.Candidate{Node: "node-4", Total: 387, Scores: []record.PluginScore{
				{Plugin: "TaintToleration", Raw: 0, Weighted: 300},
				{Plugin: "NodeResourcesFit", Raw: 87, Weighted: 87}}},
			RunnerUp: &record.Candidate{Node: "node-9", Total: 380, Scores: []record.PluginScore{
				{Plugin: "TaintToleration", Raw: 0, Weighted: 300},
				{Plugin: "NodeResourcesFit", Raw: 80, Weighted: 80}}},
		},
	}
}

// TestPages holds whole pages for canned reports. Run with -update after a change that is meant, and read the diff.
func TestPages(t *testing.T) {
	pause := &record.Pause{Since: now - 90*record.Second, Reason: "storage upgrade", By: "ann"}
	pausedPod := record.PodReport{At: now, Pod: pod("web"), Where: record.Active, Since: now - 5*record.Second,
		Paused: pause}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	standing := Pause{Lease: "kube-system/kube-scheduler", State: "pausing", Holder: "host_1", InFlight: 7,
		Since: &since, Reason: "storage upgrade", By: "ann"}
	backoff := record.PodReport{At: now, Pod: pod("retry"), Where: record.Backoff, Since: now - record.Second,
		BackoffUntil: now + 3*record.Second,
		Attempts:     2, Errors: 2, Nominated: "node-3",
		Fit: &record.Fit{Nodes: 5, Feasible: 2, FeasibleExamples: []string{"node-1", "node-2"}}}
	gated := record.PodReport{At: now, Pod: pod("later"), Where: record.Gated, Since: now - 90*record.Second,
		Gates: []string{"example.com/quota"},
		WaitsFor: []record.WaitsFor{{Plugin: "SchedulingGates",
			Events: []string{"PodUpdatePodSchedulingGatesEliminated"}}}}
	refused := record.PodReport{At: now, Pod: pod("pinned"), Where: record.Unschedulable,
		Fit: &record.Fit{Nodes: 5, PreFilter: "NodeAffinity",
			PreFilterReason: "node(s) didn't match Pod's node affinity/selector"}}
	forgotten := record.PodReport{At: now, Pod: pod("old"), Node: "node-1"}
	overflowed := record.PodReport{At: now, Pod: pod("huge"), Where: record.Active,
		Requests: []record.ResourceAmount{{Resource: "memory", Value: 1<<63 - 1, Overflowed: true}}}
	node := record.NodeReport{At: now, Revision: 5, Name: "node-4", Unschedulable: true, PodCount: 2, Assumed: 1,
		Labels: []record.Label{{Key: "zone", Value: "a"}}, Taints: []string{"dedicated=gpu:NoSchedule"},
		Ports: []string{"TCP/0.0.0.0:80"},
		Resources: []record.NodeResource{
			{Resource: "cpu", Allocatable: 8000, Confirmed: 335, Assumed: 200, Requested: 535, Free: 7465,
				Scored: 630, HasScored: true},
			{Resource: "memory", Allocatable: 32 << 30, Confirmed: 40 << 30, Requested: 40 << 30, Free: -8 << 30,
				Scored: 41 << 30, HasScored: true},
			{Resource: "hugepages-1Gi", Allocatable: 4 << 30, Free: 4 << 30},
			{Resource: "pods", Allocatable: 110, Confirmed: 1, Assumed: 1, Requested: 2, Free: 108}},
		Scores: []record.ScoreReadings{{Plugin: "NodeResourcesFit", Reads: "scored",
			Resources: []string{"cpu", "memory"}},
			{Plugin: "NodeResourcesBalancedAllocation", Reads: "requested", Resources: []string{"cpu", "memory"}}},
		Pods: []record.PodOnNode{{Pod: pod("web"), Assumed: true,
			Holds: []record.ResourceAmount{{Resource: "cpu", Value: 200}}},
			{Pod: pod("silent"), Terminating: true, Priority: 1000}}}
	queue := record.QueueReport{At: now, Counts: record.QueueCounts{Active: 1, Backoff: 1, Unschedulable: 1,
		Gated: 1}, Entries: []record.QueueEntry{
		{Pod: pod("web"), Where: record.Active, Profile: "default-scheduler", Priority: 5,
			Since: now - record.Second/4},
		{Pod: pod("train-0"), Gang: "default/train", Members: []string{"a", "b", "c"}, Where: record.Active,
			Priority: 2, Since: now - record.Second},
		{Pod: pod("retry"), Where: record.Backoff, Attempts: 2, Since: now - record.Second, Until: now +
			3*record.Second},
		{Pod: pod("big"), Where: record.Unschedulable, Attempts: 3, Since: now - 12*record.Second, Until: now +
			288*record.Second, Created: now - 60*record.Second,
			Plugins: []string{"NodeResourcesFit", "TaintToleration"}}}}
	gang := record.GangReport{At: now, Name: "ml/train", Source: "podgroup", Quorum: 4, Stated: true, Bound: 0,
		Waiting: 4, Priority: 10, Where: record.Unschedulable,
		Attempts: 3, Since: now - 12*record.Second, Estimate: now + 90*record.Second,
		Basis: "its best try grew from 1 to 2 of 4 pods in 45 s, and may go on so",
		Pods: []record.GangPod{{Pod: pod("train-0"), State: "waiting", Node: "node-1"},
			{Pod: pod("train-1"), State: "waiting", Node: "node-2"},
			{Pod: pod("train-2"), State: "waiting"},
			{Pod: pod("train-3"), State: "gated",
				Note: "ml/train-3: waiting for scheduling gates: [example.com/quota]"}},
		Fit: &record.GangFit{Verdict: "does not fit now", Placed: 2, Needed: 4, Tried: 9, Blocked: "train-2",
			Message: "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."},
		HeldByOther: &record.GangHold{Gang: "ml/other", Pods: 2, Nodes: []string{"node-3", "node-4"},
			Since: now - 30*record.Second, Until: now + 270*record.Second}}
	gathering := record.GangReport{At: now, Name: "ml/slow", Source: "annotation", Quorum: 2, Waiting: 2,
		Where: record.Gated, Missing: 1, Gate: "GangScheduling",
		Reason: "gang ml/slow needs 3 pods, 2 are there",
		Pods:   []record.GangPod{{Pod: pod("slow-0"), State: "waiting"}}}
	elastic := record.GangReport{At: now, Name: "ml/wide", Source: "annotation", Quorum: 2, Stated: true, Desired: 4,
		Bound: 2, Waiting: 1, Where: record.Unschedulable,
		Attempts: 2, SparedFor: "ml/train", Pods: []record.GangPod{{Pod: pod("wide-0"), State: "bound", Node: "node-1"},
			{Pod: pod("wide-1"), State: "bound", Node: "node-2"}, {Pod: pod("wide-2"), State: "waiting"}},
		Fit: &record.GangFit{Verdict: "does not fit now", Needed: 1, Tried: 1, Blocked: "wide-2",
			Message: "0/5 nodes are available: 5 Insufficient nvidia.com/gpu."}}
	gangs := record.GangList{At: now, Counts: record.GangCounts{Gangs: 6, Waiting: 4, Partial: 1},
		Gangs: []record.GangEntry{
			{Name: "ml/plain", Source: "annotation", OneByOne: true, Waiting: 2, Where: record.Unschedulable},
			{Name: "ml/serve", Source: "podgroup", Quorum: 2, Stated: true, Desired: 3, Bound: 3, Where: record.Gone},
			{Name: "ml/slow", Source: "annotation", Quorum: 3, Waiting: 2, Missing: 1, Where: record.Gated,
				Since: now - 5*record.Second, Gate: "GangScheduling", Reason: "gang ml/slow needs 3 pods, 2 are there",
				Plugins: []string{"GangScheduling"}},
			{Name: "ml/train", Source: "podgroup", Quorum: 4, Stated: true, Waiting: 4, Priority: 10,
				Where: record.Backoff, Since: now - 12*record.Second, Attempts: 3, BackoffUntil: now + 4*record.Second,
				Plugins: []string{"NodeResourcesFit"}, Verdict: "does not fit now",
				Holds: &record.GangHold{Gang: "ml/train", Pods: 2, Nodes: []string{"node-3", "node-4"},
					Until: now + 270*record.Second}},
			{Name: "ml/worn", Source: "podgroup", Quorum: 2, Stated: true, Bound: 1, Waiting: 1,
				Where: record.Unschedulable, Since: now - record.Second, Plugins: []string{"NodeAffinity"},
				PartialSince: now - 60*record.Second}}}
	limited := gangs
	limited.Only, limited.Gangs = "ml", gangs.Gangs[1:2]
	for name, write := range map[string]func(io.Writer) error{
		"gangs":            func(w io.Writer) error { return Gangs(w, gangs, false) },
		"gangs-wide":       func(w io.Writer) error { return Gangs(w, gangs, true) },
		"gangs-limited":    func(w io.Writer) error { return Gangs(w, limited, false) },
		"gangs-none":       func(w io.Writer) error { return Gangs(w, record.GangList{At: now, Paused: pause}, false) },
		"gang-elastic":     func(w io.Writer) error { return Gang(w, elastic, false) },
		"gang":             func(w io.Writer) error { return Gang(w, gang, false) },
		"gang-gathering":   func(w io.Writer) error { return Gang(w, gathering, false) },
		"pod-too-big":      func(w io.Writer) error { return Pod(w, tooBig(), false) },
		"pod-too-big-wide": func(w io.Writer) error { return Pod(w, tooBig(), true) },
		"pod-placed":       func(w io.Writer) error { return Pod(w, placed(), false) },
		"pod-placed-wide":  func(w io.Writer) error { return Pod(w, placed(), true) },
		"pod-backoff":      func(w io.Writer) error { return Pod(w, backoff, false) },
		"pod-gated":        func(w io.Writer) error { return Pod(w, gated, false) },
		"pod-refused":      func(w io.Writer) error { return Pod(w, refused, false) },
		"pod-forgotten":    func(w io.Writer) error { return Pod(w, forgotten, false) },
		"pod-overflowed":   func(w io.Writer) error { return Pod(w, overflowed, false) },
		"node":             func(w io.Writer) error { return Node(w, node, false) },
		"node-wide":        func(w io.Writer) error { return Node(w, node, true) },
		"queue":            func(w io.Writer) error { return Queue(w, queue, false) },
		"queue-wide":       func(w io.Writer) error { return Queue(w, queue, true) },
		"queue-empty":      func(w io.Writer) error { return Queue(w, record.QueueReport{}, false) },
		"queue-paused": func(w io.Writer) error {
			return Queue(w, record.QueueReport{At: now, Paused: pause},
				false)
		},
		"pod-paused": func(w io.Writer) error { return Pod(w, pausedPod, false) },
		"pause":      func(w io.Writer) error { return Pausing(w, standing, since.Add(90*time.Second)) },
		"pause-none": func(w io.Writer) error {
			return Pausing(w, Pause{Lease: "kube-system/kube-scheduler", State: "scheduling"}, since)
		},
		"decision": func(w io.Writer) error { return Decision(w, *placed().Last) },
		"moves": func(w io.Writer) error {
			io.WriteString(w, MoveHead)
			for _, m := range tooBig().Moves {
				if err := Move(w, m, time.UTC); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) { holds(t, name, write) })
	}
}

// holds compares a page with the one under testdata.
func holds(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got strings.Builder
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

// TestAmounts: exact where a unit allows it, one decimal elsewhere, and never a wrap at the ends of the range.
func TestAmounts(t *testing.T) {
	for _, tt := range []struct {
		resource string
		value    int64
		want     string
	}{
		{"cpu", 2000, "2"}, {"cpu", 1500, "1500m"}, {"cpu", 0, "0"}, {"cpu", -500, "-500m"},
		{"memory", 0, "0"}, {"memory", 1023, "1023"}, {"memory", 512 << 20, "512Mi"}, {"memory", 3<<30 + 1, "3.0Gi"},
		{"memory", -1 << 30, "-1Gi"}, {"memory", 1<<63 - 1, "too large to count"}, {"memory", 1<<63 - 2, "8.0Ei"},
		{"memory", -1 << 63, "-8.0Ei"},
		{"hugepages-1Gi", 2 << 30, "2Gi"}, {"pods", 110, "110"}, {"example.com/gpu", 8, "8"},
	} {
		if got := Amount(tt.resource, tt.value); got != tt.want {
			t.Errorf("%s %d: got %s, want %s", tt.resource, tt.value, got, tt.want)
		}
	}
}

// failing writes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestBrokenPipe: an output that is gone is an error, not a panic.
func TestBrokenPipe(t *testing.T) {
	if Pod(failing{}, tooBig(), true) == nil || Queue(failing{}, record.QueueReport{}, false) == nil {
		t.Error("no error from a closed pipe")
	}
}

// TestHostileNamesStayInTheirCells: whatever a name in a file of another machine contains, it cannot control the
// terminal, begin a line or a column, or hide and reorder text.
func TestHostileNamesStayInTheirCells(t *testing.T) {
	const hostile = "a\x1b[2J\rb\nc\td\u009b31m\u202ee\x9bf\u200bg"
	in := record.Incident{ID: hostile, Cause: hostile, Text: hostile, Detail: hostile, InHand: hostile, File: hostile, Took: 1}
	replay := record.IncidentReplay{Incident: in, First: &record.IncidentDifference{Line: hostile, Now: []string{hostile}}}
	report := journey.Report{Journey: record.Journey{Pod: record.PodRef{Namespace: hostile, Name: hostile, UID: hostile},
		Gang: hostile, Node: hostile, Ended: 1, End: hostile,
		Spans: []record.PhaseSpan{{Event: hostile, Hint: hostile, Plugins: []string{hostile}}}},
		Requests: []record.RequestTiming{{Verb: hostile, Resource: hostile, Failed: hostile, AuditID: hostile}}}
	profile := &apm.Profile{Scheduler: hostile, Program: hostile, Functions: []apm.Row{{Name: hostile, Lane: hostile}},
		Notes: []string{hostile}, Unknown: map[string]string{hostile: hostile}}
	failed := in
	failed.Error = hostile
	for name, page := range map[string]struct {
		lines int
		write func(io.Writer) error
	}{
		"list": {3, func(w io.Writer) error {
			return Incidents(w, record.Incidents{Incidents: []record.Incident{in, failed}}, true)
		}},
		"get":     {5, func(w io.Writer) error { return Incident(w, in) }},
		"replay":  {7, func(w io.Writer) error { return IncidentReplay(w, replay) }},
		"journey": {0, func(w io.Writer) error { return Journey(w, report, true) }},
		"profile": {0, func(w io.Writer) error { return Profile(w, profile, 0, true) }},
	} {
		var out strings.Builder
		if err := page.write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "a?[2J?b?c?d?31m?e\ufffdf?g") {
			t.Errorf("%s: the name is not in\n%s", name, out.String())
		}
		for _, c := range out.String() {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Errorf("%s has the character %U", name, c)
			}
		}
		if n := strings.Count(out.String(), "\n"); page.lines > 0 && n != page.lines {
			t.Errorf("%s has %d lines, want %d:\n%s", name, n, page.lines, out.String())
		}
		for line := range strings.Lines(out.String()) {
			if strings.HasPrefix(line, "c?") || strings.HasPrefix(line, "b?") {
				t.Errorf("%s: a name begins the line %q", name, line)
			}
		}
	}
}

// TestPhasesThatRepeatAreOneRow: a pod that was tried early three times has one row for its three backoffs, in the
// narrow form; what differs in its event, its plugins or its phase has a row of its own.
func TestPhasesThatRepeatAreOneRow(t *testing.T) {
	const ms = record.Time(time.Millisecond)
	span := func(phase record.Phase, start, took record.Time, attempt int, event string, plugins ...string) record.PhaseSpan {
		return record.PhaseSpan{Phase: phase, Start: start * ms, Took: took * ms, Attempt: attempt, Event: event, Plugins: plugins}
	}
	report := journey.Report{Journey: record.Journey{Pod: record.PodRef{Namespace: "a", Name: "b", UID: "u"}, Ended: 100 * ms,
		End: record.EndBound, Spans: []record.PhaseSpan{
			span(record.PhaseBackoff, 0, 10, 1, "PopFromBackoffQ", "Fit"),
			span(record.PhaseBackoff, 10, 20, 2, "PopFromBackoffQ", "Fit"),
			span(record.PhaseBackoff, 30, 30, 3, "PopFromBackoffQ", "Fit"),
			span(record.PhaseBackoff, 60, 5, 4, "BackoffComplete", "Fit"),
			span(record.PhaseBackoff, 65, 5, 5, "BackoffComplete", "Taints"),
			span(record.PhaseActive, 70, 30, 5, "BackoffComplete", "Taints"),
		}}}
	for wide, want := range map[bool][]string{ // order: each form is checked alone
		false: {
			"backoff ×3 +0 60.0ms 60.0% 1-3 PopFromBackoffQ - Fit",
			"backoff +60.0ms 5.0ms 5.0% 4 BackoffComplete - Fit",
			"backoff +65.0ms 5.0ms 5.0% 5 BackoffComplete - Taints",
			"active +70.0ms 30.0ms 30.0% 5 BackoffComplete - Taints",
		},
		true: {
			"backoff +0 10.0ms 10.0% 1 PopFromBackoffQ - Fit",
			"backoff +10.0ms 20.0ms 20.0% 2 PopFromBackoffQ - Fit",
			"backoff +30.0ms 30.0ms 30.0% 3 PopFromBackoffQ - Fit",
			"backoff +60.0ms 5.0ms 5.0% 4 BackoffComplete - Fit",
			"backoff +65.0ms 5.0ms 5.0% 5 BackoffComplete - Taints",
			"active +70.0ms 30.0ms 30.0% 5 BackoffComplete - Taints",
		},
	} {
		var rows []string
		for _, cells := range phaseRows(&report, wide)[1:] {
			rows = append(rows, strings.Join(cells, " "))
		}
		if !slices.Equal(rows, want) {
			t.Errorf("wide %v:\n%s\nwant\n%s", wide, strings.Join(rows, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestAttemptOfALocalPlanner: the last try of a pod that a local planner has names the planner. Fault: decision 3 is
// searched for among those of the loop.
func TestAttemptOfALocalPlanner(t *testing.T) {
	pod := record.PodRef{Namespace: "default", Name: "p", UID: "u"}
	last := record.Decision{Number: 3, Instance: "local-2", At: 5 * record.Second, Pod: pod, Attempt: 1,
		Verdict: record.DoesNotFit, Message: "0/4 nodes are available: 4 no licence."}
	var why, decision strings.Builder
	if err := Pod(&why, record.PodReport{At: 8 * record.Second, Pod: pod, Where: record.Gated,
		Gate: "Instances: instance local-2 decides it", Last: &last}, false); err != nil {
		t.Fatal(err)
	}
	if err := Decision(&decision, last); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		why.String():      "Last try:   3s ago by local-2: 0/4 nodes are available: 4 no licence.",
		decision.String(): "decision 3 of local-2: pod default/p, attempt 1: unschedulable",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
}
