// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
	"github.com/kumiki-scheduler/kumiki/apm/samples"
	"github.com/kumiki-scheduler/kumiki/record"
)

var update = flag.Bool("update", false, "write what is found into the scenarios")

// TestScenarios: a scheduler with a cause, as its own record of phases, its metrics and the API server show it for 5 s,
// and the causes that are found. A scenario is a file in testdata; lines with > are what is found.
//
//	loop STATE=SHARE ...                what the loop did (idle=1 if the line is missing)
//	pods RATE PHASE=TIME ...            pods arrive at a rate; each goes through the phases. PHASE/EVENT=TIME has what
//	                                    ended the phase
//	line N RATE PHASE=0s PHASE=TIME ... N pods are in the first phase at the start, and leave it at the rate
//	stuck N PHASE ...                   N pods are in the last phase all the time, and were in the others before
//	victims N                           the first N pods wait for victims
//	late N                              N pods that the recorder sees are not in any phase
//	api handler=T fairness=T etcd=T     what the API server measures of a bind; rejected=T: for each bind, one request per
//	                                    second of it was rejected
//	probes BEST MEAN                    empty requests to the API server
//	limit NAME VALUE                    a limit that the scheduler reports
//	trace NAME=T ...                    busy, runnable, sync, assist, gc, others of the trace; cpu=SHARE of executing
//	                                    threads; plugin:NAME and function:NAME with CPU time; wait:NAME with blocked time
//	lost                                the phases of one pod were overwritten
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < bottleneck.Causes {
		t.Fatalf("%d scenarios, error %v", len(files), err)
	}
	named := map[string]bool{} // cause -> a scenario names it
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var input, want string
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, ">") {
					want += line
				} else {
					input += line
				}
			}
			w := newWorld(t, input)
			v := bottleneck.Find(Window(w.document(), w.profile(), w.phases()))
			if v.Known {
				named[v.Findings[0].Cause.String()] = true
			}
			got := showVerdict(&v)
			if *update {
				if err := os.WriteFile(file, []byte(input+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
	for c := range bottleneck.Cause(bottleneck.Causes) {
		if !named[c.String()] {
			t.Errorf("no scenario names %s", c)
		}
	}
}

// showVerdict writes what is found, without what took less than half a percent.
func showVerdict(v *bottleneck.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "> by %s: %.1f pod-seconds, explained %.2f\n", v.Source, v.PodSeconds, v.Explained)
	if !v.Known {
		fmt.Fprintf(&b, "> not known: %s\n", v.NotKnown)
	}
	for i, f := range v.Findings {
		if f.Share >= 0.005 || i == 0 {
			fmt.Fprintf(&b, "> %s %.2f\n", f.Cause, f.Share)
		}
	}
	return b.String()
}

const (
	worldBegan   = 1_000_000_000_000 // of the observed time, in ns
	worldSeconds = 5
	every        = int64(250 * time.Millisecond)
)

// world is a scenario.
type world struct {
	t        *testing.T
	journeys []record.Journey
	waits    []record.EvictionTiming
	loop     map[string]float64
	limits   map[string]float64
	api      map[string]time.Duration
	trace    map[string]string
	calls    [][2]int64 // when binds were under way
	probes   []int64
	late     int
	lost     bool
}

func newWorld(t *testing.T, input string) *world {
	w := &world{t: t, loop: map[string]float64{}, limits: map[string]float64{}, trace: map[string]string{},
		api: map[string]time.Duration{}, probes: []int64{1e6, 1e6}}
	for lines := bufio.NewScanner(strings.NewReader(input)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		w.line(f)
	}
	if len(w.loop) == 0 {
		w.loop["idle"] = 1
	}
	return w
}

func (w *world) line(f []string) {
	switch f[0] {
	case "loop":
		for _, word := range f[1:] {
			name, value, _ := strings.Cut(word, "=")
			w.loop[name] = w.number(value)
		}
	case "pods":
		step := int64(1e9 / w.number(f[1]))
		for at := worldBegan - 10*int64(time.Second); at < worldBegan+worldSeconds*1e9; at += step {
			w.pod(at, 0, f[2:])
		}
	case "line":
		for i := range int(w.number(f[1])) {
			w.pod(worldBegan, int64(float64(i+1)*1e9/w.number(f[2])), f[3:])
		}
	case "stuck":
		for range int(w.number(f[1])) {
			w.pod(worldBegan-int64(len(f)-3)*1000, 0, f[2:])
		}
	case "victims":
		for i := range int(w.number(f[1])) {
			w.waits = append(w.waits, record.EvictionTiming{For: w.journeys[i].Pod, Requested: worldBegan})
		}
	case "late":
		w.late = int(w.number(f[1]))
	case "api":
		for _, word := range f[1:] {
			name, value, _ := strings.Cut(word, "=")
			w.api[name] = w.duration(value)
		}
	case "probes":
		best, mean := w.duration(f[1]), w.duration(f[2])
		w.probes = []int64{int64(best), int64(2*mean - best)}
	case "limit":
		w.limits[f[1]] = w.number(f[2])
	case "trace":
		for _, word := range f[1:] {
			name, value, _ := strings.Cut(word, "=")
			w.trace[name] = value
		}
	case "lost":
		w.lost = true
	default:
		w.t.Fatalf("unknown word %q", f[0])
	}
}

func (w *world) number(text string) float64 {
	w.t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) duration(text string) time.Duration {
	w.t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// now is when the phases were read.
const now = worldBegan + worldSeconds*1e9 + 1e6

// pod adds a pod that begins at a time and stays longer in its first phase.
func (w *world) pod(at, longer int64, words []string) {
	j := record.Journey{Pod: record.PodRef{Namespace: "a", Name: fmt.Sprint(len(w.journeys)),
		UID: fmt.Sprint("u", len(w.journeys))}, Began: record.Time(at)}
	attempt := 0
	for i, word := range words {
		word, length, timed := strings.Cut(word, "=")
		name, event, _ := strings.Cut(word, "/")
		s := record.PhaseSpan{Start: record.Time(at), Event: event, Attempt: attempt}
		if err := s.Phase.UnmarshalText([]byte(name)); err != nil {
			w.t.Fatal(err)
		}
		took := int64(1000)
		if timed {
			took = int64(w.duration(length))
		}
		if i == 0 {
			took += longer
		}
		if s.Phase == record.PhaseDeciding {
			attempt++
		}
		if s.Phase == record.PhaseLimited || s.Phase == record.PhaseSent {
			w.calls = append(w.calls, [2]int64{at, at + took})
		}
		if !timed && i == len(words)-1 || at+took >= now {
			// It goes on. The moments of a bind are known when it ends.
			for s.Phase == record.PhaseLimited || s.Phase == record.PhaseSent {
				s.Phase = record.PhaseBindQueued
				if n := len(j.Spans) - 1; n >= 0 && j.Spans[n].Phase >= record.PhaseBindQueued {
					s.Phase, s.Start, j.Spans = j.Spans[n].Phase, j.Spans[n].Start, j.Spans[:n]
				}
			}
			j.Spans = append(j.Spans, s)
			w.journeys = append(w.journeys, j)
			return
		}
		s.Took = record.Time(took)
		j.Spans, at = append(j.Spans, s), at+took
	}
	j.Ended, j.End = record.Time(at), record.EndBound
	w.journeys = append(w.journeys, j)
}

// phases is what the scheduler reports.
func (w *world) phases() *Phases {
	t := &record.Timing{Since: 1, Now: now, Journeys: w.journeys, Evictions: w.waits}
	for i := range w.journeys {
		if err := w.journeys[i].Check(); err != nil {
			w.t.Fatal(err)
		}
	}
	if w.lost {
		t.Journeys = slices.Clone(t.Journeys)
		t.Journeys[len(t.Journeys)-1].LostSpans = 1
	}
	return &Phases{t, time.Unix(0, now-1e6), time.Unix(0, now+1e6)}
}

// at counts the pods in each phase at a time, and those that had left a phase.
func (w *world) at(at int64) (in, left [record.Phases]int, came int) {
	for i := range w.journeys {
		j := &w.journeys[i]
		if int64(j.Began) <= at {
			came++
		}
		for k, s := range j.Spans {
			end := int64(s.End())
			if k == len(j.Spans)-1 && j.Ended == 0 {
				end = now
			}
			switch {
			case end <= at:
				left[s.Phase]++
			case int64(s.Start) <= at:
				in[s.Phase]++
			}
		}
	}
	return in, left, came
}

// document is what is sampled meanwhile.
func (w *world) document() *samples.Document {
	d := &samples.Document{Before: samples.Values{}, After: samples.Values{}}
	_, before, _ := w.at(worldBegan)
	area, answered := int64(0), 0.0
	for at := int64(worldBegan); at <= worldBegan+worldSeconds*1e9; at += every {
		in, left, came := w.at(at)
		unbound := w.late
		for p := record.PhaseInbox; p <= record.PhaseSent; p++ {
			unbound += in[p]
		}
		answered = float64(left[record.PhaseSent] - before[record.PhaseSent])
		v := samples.Values{
			attempts + `{result="scheduled"}`:       float64(left[record.PhaseDeciding]),
			pointCount + `{extension_point="Bind"}`: answered, pointSum + `{extension_point="Bind"}`: answered,
			`scheduler_cache_size{type="assumed_pods"}`: float64(in[record.PhasePreparing] + in[record.PhaseBindQueued] +
				in[record.PhaseLimited] + in[record.PhaseSent] + in[record.PhaseAnswered]),
		}
		for _, c := range w.calls {
			if c[0] <= at && at < c[1] {
				v[goroutines+`{operation="binding"}`]++
			}
		}
		for p := record.PhaseGated; p <= record.PhaseActive; p++ {
			v[pending+`{queue="`+p.String()+`"}`] = float64(in[p])
		}
		for name, share := range w.loop { // order: into a map
			v[loopSeconds+`{state="`+name+`"}`] = share * float64(at-worldBegan) / 1e9
		}
		for name, value := range w.limits { // order: into a map
			v[limits+`{cause="`+name+`"}`] = value
		}
		// The watch of the recorder sees each change, so its area is exact.
		if at > worldBegan {
			area += w.area(at-every, at)
		}
		d.Samples = append(d.Samples, samples.Sample{At: at, Values: v, Probes: w.probes,
			Pods: &samples.Pods{Unbound: unbound, Created: came + w.late, Area: area}})
	}
	for name, value := range map[string]time.Duration{handlerSum: w.api["handler"] + w.api["fairness"],
		fairnessSum: w.api["fairness"], etcdSum: w.api["etcd"]} { // order: into a map
		labels := map[string]string{handlerSum: `{subresource="binding"}`, etcdSum: `{operation="update",type="pods"}`,
			fairnessSum: `{execute="true",priority_level="workload-high"}`}[name]
		d.After[name+labels] = answered * value.Seconds()
		d.After[strings.TrimSuffix(name, "sum")+"count"+labels] = answered
	}
	d.After[fairnessCount+`{execute="false",priority_level="workload-high"}`] = answered * w.api["rejected"].Seconds()
	return d
}

// area is the time without a node that the watch of the recorder sees.
func (w *world) area(from, to int64) (sum int64) {
	sum = int64(w.late) * (to - from)
	for i := range w.journeys {
		j := &w.journeys[i]
		for k, s := range j.Spans {
			end := int64(s.End())
			if k == len(j.Spans)-1 && j.Ended == 0 {
				end = now
			}
			if s.Phase <= record.PhaseSent {
				sum += max(min(end, to)-max(int64(s.Start), from), 0)
			}
		}
	}
	return sum
}

// profile is what the trace shows; nil without a line about it.
func (w *world) profile() *apm.Profile {
	if len(w.trace) == 0 {
		return nil
	}
	of := func(name string) time.Duration {
		if text := w.trace[name]; text != "" {
			return w.duration(text)
		}
		return 0
	}
	traced, factor := time.Duration(worldSeconds*time.Second), 1.0
	if text := w.trace["cpu"]; text != "" {
		factor = w.number(text)
	}
	cpu := time.Duration(float64(of("busy")) * factor)
	p := &apm.Profile{Traced: &traced, CPU: apm.CPU{Executing: of("busy") + of("gc") + of("others"), Factor: &factor},
		Lanes: []apm.Row{
			{Name: "loop", Lane: apm.Loop, InLoop: true, Running: of("busy"), Runnable: of("runnable"), CPU: &cpu,
				Assist: of("assist"), Blocked: apm.Blocked{apm.Sync: of("sync")}},
			{Name: "GC", Lane: apm.Collector, Running: of("gc")},
			{Name: "binding", Lane: apm.Binding, Runnable: of("answers")},
		}}
	for word, text := range w.trace { // order: each for itself
		kind, name, is := strings.Cut(word, ":")
		if !is {
			continue
		}
		d := w.duration(text)
		switch kind {
		case "plugin":
			p.Plugins = append(p.Plugins, apm.Row{Name: name, InLoop: true, CPU: &d})
		case "function":
			p.Functions = append(p.Functions, apm.Row{Name: kumikiPath + name, InLoop: true, CumulativeCPU: &d})
		case "wait":
			p.Functions = append(p.Functions, apm.Row{Name: kumikiPath + name, Blocked: apm.Blocked{apm.Select: d}})
		}
	}
	return p
}

// TestClocksAreJoined: the clock of the phases may differ from that of the samples; the times at which they were read
// say by how much at least.
func TestClocksAreJoined(t *testing.T) {
	text, err := os.ReadFile("testdata/gate.txt")
	if err != nil {
		t.Fatal(err)
	}
	input, _, _ := strings.Cut(string(text), ">")
	w := newWorld(t, input)
	for _, ahead := range []time.Duration{-time.Hour, 0, time.Hour} {
		p := w.phases()
		p.ReadBegan, p.ReadEnded = p.ReadBegan.Add(-ahead), p.ReadEnded.Add(-ahead)
		d := w.document()
		for i := range d.Samples {
			d.Samples[i].At -= int64(ahead)
		}
		v := bottleneck.Find(Window(d, nil, p))
		if !v.Known || v.Findings[0].Cause != bottleneck.Gate || v.Source != "phases of 80 pods" {
			t.Errorf("with a clock that is ahead by %s: %+v", ahead, v)
		}
	}
}

// TestPhasesThatAreNotComplete: without all phases of all pods gauges are used, and the reason is said.
func TestPhasesThatAreNotComplete(t *testing.T) {
	w := newWorld(t, "stuck 30 gated")
	for want, change := range map[string]func(*Phases){
		"alone":                func(p *Phases) { p.Only = "a" },
		"more than 10000 pods": func(p *Phases) { p.Journeys = make([]record.Journey, MaxJourneys) },
		"began to record":      func(p *Phases) { p.Since = worldBegan + 1 },
		"before the recording had ended": func(p *Phases) {
			p.Now, p.ReadBegan = worldBegan, time.Unix(0, 0)
		},
	} {
		p := w.phases()
		change(p)
		v := bottleneck.Find(Window(w.document(), nil, p))
		if !strings.HasPrefix(v.Source, "gauges of /metrics, because ") || !strings.Contains(v.Source, want) {
			t.Errorf("known by %q, want %q", v.Source, want)
		}
	}
}

// TestGaugesCheckPhases: where pods are on their way to the scheduler, gauges are the second measurement.
func TestGaugesCheckPhases(t *testing.T) {
	w := newWorld(t, "pods 40 inbox=100us active=100us deciding=50us sent=500ms\nlate 30\napi handler=4ms etcd=1ms")
	d := w.document()
	if v := bottleneck.Find(Window(d, nil, w.phases())); !v.Known || v.Findings[0].Cause != bottleneck.WatchDelivery ||
		v.Little == nil {
		t.Errorf("gauges and phases agree: %+v", v)
	}
	for i := range d.Samples {
		d.Samples[i].Values[`scheduler_cache_size{type="assumed_pods"}`] += 40
	}
	if v := bottleneck.Find(Window(d, nil, w.phases())); v.Known || !strings.Contains(v.NotKnown, "two measurements") {
		t.Errorf("gauges and phases differ: %+v", v)
	}
}
