// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"errors"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kumiki-scheduler/kumiki/apm/bottleneck"
)

// result makes a result in which a cause is named; none for a cause that does not exist.
func result(scheduler string, injected, named bottleneck.Cause, seed uint64) Result {
	r := Result{Scheduler: scheduler, Name: injected.String(), Injected: injected, Seed: seed, Strength: "7"}
	if int(named) < bottleneck.Causes {
		r.Verdict = bottleneck.Verdict{Known: true, Findings: []bottleneck.Finding{{Cause: named, Share: 0.9}}}
	}
	return r
}

const none = bottleneck.Cause(bottleneck.Causes)

// TestEachCauseIsInjected: each cause of the closed list is injected into kumiki, and where it is not injected into
// kube-scheduler, there is a reason.
func TestEachCauseIsInjected(t *testing.T) {
	by, names := map[bottleneck.Cause]bool{}, map[string]bool{}
	for _, c := range Cases() {
		if names[c.Name] {
			t.Errorf("two cases have the name %s", c.Name)
		}
		if c.Kumiki != (c.Why != "") || c.What == "" || c.inject == nil {
			t.Errorf("case %s: kumiki alone %v because %q", c.Name, c.Kumiki, c.Why)
		}
		names[c.Name], by[c.Cause] = true, true
	}
	for c := range bottleneck.Cause(bottleneck.Causes) {
		if !by[c] {
			t.Errorf("%s is not injected", c)
		}
	}
	if n := len(NotInjected(true)); n != 0 {
		t.Errorf("%d causes are not injected into kumiki", n)
	}
	if why := NotInjected(false)[bottleneck.Lock]; why != needsFault {
		t.Errorf("lock is not injected into kube-scheduler because %q", why)
	}
}

// TestTurns: each seed comes with all causes, and kube-scheduler is left out where it has no such cause.
func TestTurns(t *testing.T) {
	o := Options{Seeds: []uint64{4, 9}, Schedulers: []Scheduler{{"kumiki", "k"}, {"kube-scheduler", "u"}},
		Cases: Cases()}
	o.Cases = slices.DeleteFunc(o.Cases, func(c Case) bool { return c.Name != "gate" && c.Name != "lock" })
	var got []string
	for _, turn := range o.turns() {
		got = append(got, turn.scheduler.Name+" "+turn.c.Name+" "+string(rune('0'+turn.seed)))
	}
	want := []string{"kumiki lock 4", "kumiki gate 4", "kube-scheduler gate 4", "kumiki lock 9", "kumiki gate 9",
		"kube-scheduler gate 9"}
	if !slices.Equal(got, want) {
		t.Errorf("turns %q, want %q", got, want)
	}
}

// TestStrengthsComeFromTheSeed: a seed gives the same strengths each time, another one others.
func TestStrengthsComeFromTheSeed(t *testing.T) {
	strength := func(seed uint64, c Case) string {
		g := &ground{site: &site{}, setup: setup{}}
		text, err := c.inject(t.Context(), g, rand.New(rand.NewPCG(seed, 1)))
		if err != nil || len(g.ready) == 0 {
			t.Fatalf("case %s: %d loads, error %v", c.Name, len(g.ready), err)
		}
		return text
	}
	changed := false
	for _, c := range Cases() {
		switch c.Cause { // those that need no cluster
		case bottleneck.Arrivals, bottleneck.Plugin, bottleneck.ClientLimit, bottleneck.LostWakeUp:
			one, two := strength(1, c), strength(1, c)
			if one != two {
				t.Errorf("case %s: %q and %q from one seed", c.Name, one, two)
			}
			changed = changed || strength(2, c) != one
		}
	}
	if !changed {
		t.Error("another seed gives the same strengths")
	}
}

// TestMatrix: a row for each case in the order of the cases, seeds together, repeated ones once, and reasons.
func TestMatrix(t *testing.T) {
	failing := result("kumiki", bottleneck.Gate, none, 1)
	failing.Error = "no cluster"
	slow := result("kumiki", bottleneck.Etcd, bottleneck.Etcd, 2)
	slow.Gain = &Gain{Of: "pods/s", Before: 10, Predicted: 40, Measured: 37}
	list := []Result{slow, result("kumiki", bottleneck.Etcd, bottleneck.APILatency, 1), failing,
		result("kumiki", bottleneck.Gate, bottleneck.Gate, 1), result("kumiki", bottleneck.Hints, none, 1),
		result("kube-scheduler", bottleneck.Gate, bottleneck.Gate, 1)}
	var b strings.Builder
	if err := WriteMatrix(&b, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"### kumiki\n", "| `hints`: hints that spin, for 5 pods that wait | 7 | not known 1 of 1 | – |\n| `etcd`",
		"| 7 | api-latency 1 of 2; etcd 1 of 2 | –, 0.90 |\n",
		"0.90 |\n| `gate`: pods with a scheduling gate | 7 | gate 1 of 1 | – |\n",
		"Of 4 injections, the cause is named first in 2, another one in 1, \"not known\" is the answer in 1, and " +
			"0 failed. Of 1 gains, 1 are from 0.7 to 1.3",
		"### kube-scheduler\n", "`plugin`, `hints`, `preemption`", notThere,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Count(b.String(), "Not injected") != 1 {
		t.Errorf("causes that are not injected:\n%s", b.String())
	}
}

// TestNamed: a wrong cause is another one that is named; "not known" and failures are not.
func TestNamed(t *testing.T) {
	broken := result("kumiki", bottleneck.Gate, none, 1)
	broken.Error = "no cluster"
	for _, c := range []struct {
		r            Result
		named        string
		right, wrong bool
	}{
		{result("kumiki", bottleneck.Gate, bottleneck.Gate, 1), "gate", true, false},
		{result("kumiki", bottleneck.Gate, bottleneck.Etcd, 1), "etcd", false, true},
		{result("kumiki", bottleneck.Gate, none, 1), notKnown, false, false},
		{broken, failed, false, false},
	} {
		if c.r.Named() != c.named || c.r.Right() != c.right || c.r.Wrong() != c.wrong {
			t.Errorf("%s: named %s, right %v, wrong %v", c.named, c.r.Named(), c.r.Right(), c.r.Wrong())
		}
	}
}

// TestCheckGoesOnAfterAnAbort: a journal has what was measured; half a line of an abort is removed, failed injections
// are made again, and results of other programs do not count.
func TestCheckGoesOnAfterAnAbort(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.jsonl")
	j, err := OpenJournal(name, "v1")
	if err != nil || len(j.Results) != 0 {
		t.Fatalf("%+v, error %v", j, err)
	}
	broken := result("kumiki", bottleneck.Etcd, none, 1)
	broken.Error = "no cluster"
	for _, r := range []Result{result("kumiki", bottleneck.Gate, bottleneck.Gate, 1), broken} {
		if err := j.add(r); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"programs":"v1","sched`)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if j, err = OpenJournal(name, "v1"); err != nil || len(j.Results) != 2 {
		t.Fatalf("%+v, error %v", j, err)
	}
	if !j.has("kumiki", "gate", 1) || j.has("kumiki", "gate", 2) || j.has("kube-scheduler", "gate", 1) ||
		j.has("kumiki", "etcd", 1) {
		t.Errorf("the journal has %+v", j.Results)
	}
	if got := j.Results[0].Named(); got != "gate" {
		t.Errorf("%s was named, as the file says", got)
	}
	if err := j.add(result("kumiki", bottleneck.Etcd, bottleneck.Etcd, 1)); err != nil || !j.has("kumiki", "etcd", 1) {
		t.Errorf("after another one: error %v, %+v", err, j.Results)
	}
	if other, err := OpenJournal(name, "v2"); err != nil || len(other.Results) != 0 {
		t.Errorf("with other programs %+v, error %v", other, err)
	}
	if err := os.WriteFile(name, []byte("{}\nno result\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenJournal(name, "v1"); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a file with something else: %v", err)
	}
	// Nothing is left to do, so no cluster is started.
	o := Options{Seeds: []uint64{1}, Schedulers: []Scheduler{{"kumiki", "k"}}, Journal: j, Progress: io.Discard,
		Cases: slices.DeleteFunc(Cases(), func(c Case) bool { return c.Name != "gate" && c.Name != "etcd" })}
	if err := Run(t.Context(), o); err != nil {
		t.Error(err)
	}
}

// TestProgramsAreIdentified: another program is another identity.
func TestProgramsAreIdentified(t *testing.T) {
	dir := t.TempDir()
	name := func(text string) string {
		file := filepath.Join(dir, text)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one, err := Programs(name("a"), name("b"))
	two, err2 := Programs(name("a"), name("c"))
	if err := errors.Join(err, err2); err != nil || one == two || len(one) != 16 {
		t.Errorf("identities %q and %q, error %v", one, two, err)
	}
}

// TestGain: the measured gain divided by the predicted one.
func TestGain(t *testing.T) {
	verdict := func(placed, podSeconds float64, g bottleneck.Gain) *bottleneck.Verdict {
		return &bottleneck.Verdict{Seconds: 5, Placed: placed, PodSeconds: podSeconds,
			Findings: []bottleneck.Finding{{Gain: g}}}
	}
	after := func(placed, podSeconds float64) *bottleneck.Verdict {
		return &bottleneck.Verdict{Seconds: 10, Placed: placed, PodSeconds: podSeconds}
	}
	for name, c := range map[string]struct {
		g     *Gain
		ratio float64
		holds bool
	}{
		"rate":          {gainOf(verdict(10, 500, bottleneck.Gain{PerSecond: 40}), after(34, 0)), 0.8, true},
		"rate too high": {gainOf(verdict(10, 500, bottleneck.Gain{PerSecond: 40}), after(22, 0)), 0.4, false},
		"lower bound": {gainOf(verdict(10, 500, bottleneck.Gain{PerSecond: 40, AtLeast: true}), after(70, 0)), 2,
			true},
		"waiting":       {gainOf(verdict(10, 500, bottleneck.Gain{Saved: 0.9}), after(10, 100)), 1, true},
		"waiting stays": {gainOf(verdict(10, 500, bottleneck.Gain{Saved: 0.9}), after(10, 1000)), 0, false},
	} {
		if r := c.g.Ratio(); r < c.ratio-1e-9 || r > c.ratio+1e-9 || c.g.Holds() != c.holds {
			t.Errorf("%s: ratio %.2f, holds %v: %s", name, r, c.g.Holds(), c.g)
		}
	}
	if g := gainOf(verdict(10, 500, bottleneck.Gain{}), after(10, 500)); g != nil {
		t.Errorf("without a predicted gain: %s", g)
	}
}

// TestProgress: the estimate follows what the injections took.
func TestProgress(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	p := newProgress(&b, 40, true, func() time.Time { return now })
	now = now.Add(30 * time.Second)
	r := result("kumiki", bottleneck.Gate, bottleneck.Gate, 1)
	p.done(&r)
	for _, want := range []string{"40 injections to make, about 15 min\n",
		"[1 of 40, about 20 min to go] kumiki gate seed 1 (7): gate"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %q", want, b.String())
		}
	}
}

// TestEditsFit: each line at which a cause is put in occurs once, and the file is still one of Go.
func TestEditsFit(t *testing.T) {
	for _, e := range edits {
		text, err := os.ReadFile(filepath.Join("..", "..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		changed, err := apply(e.file, string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = parser.ParseFile(token.NewFileSet(), e.file, changed, 0)
		if err != nil || !strings.Contains(changed, e.call) {
			t.Errorf("%s after its edits: %v", e.file, err)
		}
	}
	_, err := apply(edits[0].file, "\npackage resources\n")
	if err == nil || !strings.Contains(err.Error(), "0 times") {
		t.Errorf("a file without the line: %v", err)
	}
}

// TestSlowSocket: answers through the socket are late by the delay, whatever their number, and connections work again
// after it.
func TestSlowSocket(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "s.sock")
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	s, err := interpose(name)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4)
	ask := func() time.Duration {
		began := time.Now()
		if _, err := c.Write([]byte("ping")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "ping" {
			t.Fatalf("answer %q, error %v", answer, err)
		}
		return time.Since(began)
	}
	ask()
	const delay = 30 * time.Millisecond
	s.set(delay)
	if d := ask(); d < delay {
		t.Errorf("an answer took %s, less than the delay", d)
	}
	s.set(0)
	ask()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := c.Read(answer); err == nil {
		t.Error("the connection is open after the end")
	}
}

// TestReanalysis: the rules of this program are applied to the profiles that a check kept; the results say so, and the
// check's file stays as it is.
func TestReanalysis(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "results.jsonl")
	was := result("kumiki", bottleneck.Gate, bottleneck.Gate, 1)
	was.Programs = "v1"
	other := result("kumiki", bottleneck.Etcd, bottleneck.Etcd, 2)
	if err := WriteResults(name, []Result{was, other}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"half`)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := ReadResults(name)
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, error %v", list, err)
	}
	if after, err := os.ReadFile(name); err != nil || string(after) != string(before) {
		t.Errorf("reading the results changed them: %q, error %v", after, err)
	}
	a := Reanalysis{Dir: dir, Results: list, Cases: Cases(), Seeds: []uint64{1}, Rules: "r2", Progress: io.Discard}
	got := a.Run()
	if len(got) != 1 || got[0].Rules != "r2" || got[0].Programs != "v1" || got[0].Named() != failed ||
		got[0].Strength != "7" {
		t.Fatalf("without a profile: %+v", got)
	}
	var b strings.Builder
	if err := WriteMatrix(&b, got); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "Reanalysed by program r2: profiles that programs v1 recorded.") {
		t.Errorf("the matrix does not say that results were reanalysed:\n%s", b.String())
	}
	if err := WriteResults(name, got); err != nil {
		t.Fatal(err)
	}
	if j, err := OpenJournal(name, "v1"); err != nil || len(j.Results) != 0 {
		t.Errorf("a check goes on with reanalysed results %+v, error %v", j, err)
	}
}

// TestBaseline: without an injection, the limit must be one that the no-op binder meets too, at about the same rate.
func TestBaseline(t *testing.T) {
	for _, c := range []struct {
		named      bottleneck.Cause
		rate, null float64
		right      bool
	}{
		{bottleneck.APIServerCPU, 900, 1000, true},
		{bottleneck.APIServerCPU, 500, 1000, false},
		{bottleneck.Plugin, 900, 1000, false},
	} {
		r := result("kumiki", bottleneck.APIServerCPU, c.named, 1)
		r.Baseline = &Baseline{Rate: c.rate, Null: c.null}
		if r.Right() != c.right {
			t.Errorf("%s at %s: right %v", c.named, r.Baseline, r.Right())
		}
	}
	events, now := make(chan watch.Event, 100), time.Unix(0, 0)
	for range 50 {
		events <- watch.Event{Type: watch.Added}
		events <- watch.Event{Type: watch.Deleted}
	}
	close(events)
	rate, err := rateOf(events, 50, func() time.Time {
		now = now.Add(time.Second)
		return now
	})
	if err != nil || rate != 40 {
		t.Errorf("40 pods in a second are %.1f/s, error %v", rate, err)
	}
	if _, err := rateOf(events, 50, time.Now); err == nil {
		t.Error("a watch that ended has a rate")
	}
}

// TestGainsThatAreNotPredicted: they are neither right nor wrong; a predicted standstill is right if nothing changed.
func TestGainsThatAreNotPredicted(t *testing.T) {
	unknown, still := result("kumiki", bottleneck.APF, bottleneck.APF, 1), result("kumiki", bottleneck.Prepare,
		bottleneck.Prepare, 1)
	unknown.Gain = gainOf(&bottleneck.Verdict{Placed: 9, Seconds: 5,
		Findings: []bottleneck.Finding{{Gain: bottleneck.Gain{Unknown: "of a reason"}}}}, &bottleneck.Verdict{})
	still.Gain = &Gain{Of: "waiting pods", Before: 9.4, Predicted: 9.38, Measured: 9.5}
	if s := Summarize([]Result{unknown, still}); s.Gains != 1 || s.Held != 1 || s.Unknown != 1 {
		t.Errorf("%+v", s)
	}
	if got := ratios([]Result{unknown, still}); got != "not predicted, no change predicted, 1.01 of before" {
		t.Errorf("the matrix says %q", got)
	}
	still.Gain.Measured = 5
	if still.Gain.Holds() {
		t.Error("a change that was not predicted holds")
	}
}
