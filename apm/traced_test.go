// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// cpuUsed is the CPU time of this process.
func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// metricsNow is what a scheduler's /metrics would show of this process.
func metricsNow() string {
	return fmt.Sprintf("go_info{version=\"go1.26\"} 1\nprocess_start_time_seconds 5\nprocess_cpu_seconds_total %.9f\n",
		cpuUsed().Seconds())
}

// traced runs a program under the tracer and the CPU profiler, and returns the bundle of it.
func traced(t testing.TB, program func()) *bundle.Reader {
	t.Helper()
	var cpu, events, allocs bytes.Buffer
	before := metricsNow()
	if err := pprof.StartCPUProfile(&cpu); err != nil {
		t.Fatal(err)
	}
	if err := trace.Start(&events); err != nil {
		t.Fatal(err)
	}
	program()
	trace.Stop()
	pprof.StopCPUProfile()
	runtime.GC() // the profile has allocations up to the last two collections
	runtime.GC()
	if err := pprof.Lookup("allocs").WriteTo(&allocs, 0); err != nil {
		t.Fatal(err)
	}
	return bundleOf(t, map[bundle.Kind]string{bundle.MetricsBefore: before, bundle.Trace: events.String(),
		bundle.CPU: cpu.String(), bundle.Allocs: allocs.String(), bundle.MetricsAfter: metricsNow()})
}

// bundleOf returns a bundle with the given parts. One whose content begins with "denied" is missing.
func bundleOf(t testing.TB, parts map[bundle.Kind]string) *bundle.Reader {
	t.Helper()
	var out bytes.Buffer
	w := bundle.NewWriter(&out)
	w.Manifest.Scheduler, w.Manifest.Began = "this test", time.Unix(1e9, 0)
	for kind, content := range parts {
		if strings.HasPrefix(content, "denied") {
			w.AddMissing(bundle.Part{Kind: kind}, content)
		} else if err := w.Add(bundle.Part{Kind: kind}, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := bundle.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), bundle.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func analyzed(t testing.TB, b *bundle.Reader) *Profile {
	t.Helper()
	p, err := Analyze(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rowNamed returns the row whose name ends with a suffix.
func rowNamed(t testing.TB, rows []Row, suffix string) Row {
	t.Helper()
	for _, r := range rows {
		if strings.HasSuffix(r.Name, suffix) {
			return r
		}
	}
	t.Fatalf("no row ends with %q in %v", suffix, names(rows))
	return Row{}
}

func names(rows []Row) (list []string) {
	for _, r := range rows {
		list = append(list, r.Name)
	}
	return list
}

var sink atomic.Uint64

// spin runs until the process has used an amount of CPU time.
//
//go:noinline
func spin(amount time.Duration) {
	sum := uint64(0)
	for end := cpuUsed() + amount; cpuUsed() < end; {
		for i := range uint64(20000) {
			sum += i * i
		}
	}
	sink.Store(sum)
}

// waitForMessage blocks until the channel is closed.
//
//go:noinline
func waitForMessage(c chan int) { <-c }

var kept []byte

// allocateMiBs allocates blocks of 1 MiB until its thread has used an amount of CPU time, so that the profiler has
// samples of it however fast the machine is.
//
//go:noinline
func allocateMiBs(amount time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := threadCPU() + amount
	for threadCPU() < end {
		kept = make([]byte, 1<<20)
	}
	kept = nil
}

// threadCPU is the CPU time of the calling thread.
func threadCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const workers = 7

// threeKinds spins, blocks and allocates, on goroutines of their own, and runs workers as kube-scheduler does.
func threeKinds() {
	var done sync.WaitGroup
	message := make(chan int)
	done.Go(func() { waitForMessage(message) })
	done.Go(func() { spin(300 * time.Millisecond) })
	done.Go(func() { allocateMiBs(200 * time.Millisecond) })
	workqueue.ParallelizeUntil(context.Background(), workers, 10*workers, func(int) { spin(time.Millisecond) })
	close(message)
	done.Wait()
}

// TestTimesOfAGoroutineAddUpToItsLife: running, runnable, waiting and in system calls, to the nanosecond. Those that
// executed at the same time are not more than processors.
func TestTimesOfAGoroutineAddUpToItsLife(t *testing.T) {
	var events bytes.Buffer
	if err := trace.Start(&events); err != nil {
		t.Fatal(err)
	}
	threeKinds()
	trace.Stop()
	tr := newTracker()
	seen := 0
	tr.ended = func(g *goroutine, at traceTime) {
		seen++
		sum := time.Duration(0)
		for _, d := range g.spent {
			if d < 0 {
				t.Errorf("goroutine %d (%s): a negative time in %v", g.id, g.start, g.spent)
			}
			sum += d
		}
		if life := g.life(at); sum != life || life > tr.window() {
			t.Errorf("goroutine %d (%s) lives %v of %v, its times %v add up to %v", g.id, g.start, life, tr.window(),
				g.spent, sum)
		}
	}
	if err := tr.readTrace(&events); err != nil {
		t.Fatal(err)
	}
	if seen < workers+4 {
		t.Errorf("the trace has only %d goroutines", seen)
	}
	all := newSums()
	total := time.Duration(0)
	for _, g := range tr.groups {
		all.add(g)
	}
	for a := range all.spent {
		total += all.spent[a]
	}
	blocked := time.Duration(0)
	for _, d := range all.blocked {
		blocked += d
	}
	if all.count != seen || blocked != all.spent[waiting] {
		t.Errorf("%d of %d goroutines are in a group; waiting %v, by component %v", all.count, seen,
			all.spent[waiting], blocked)
	}
	executed := time.Duration(0)
	for _, i := range all.executed {
		executed += i.to.Sub(i.from)
	}
	if most, _ := atOnce(all.executed); most > tr.processors || most == 0 || executed != all.executing() {
		t.Errorf("%d goroutines executed at once on %d processors; intervals of %v, executing %v", most,
			tr.processors, executed, all.executing())
	}
}

// TestLanesAddUpToTheProcess: with the residual, to the nanosecond; and the functions add up to the lanes.
func TestLanesAddUpToTheProcess(t *testing.T) {
	p := analyzed(t, traced(t, threeKinds))
	if p.CPU.Process == nil || p.CPU.Unattributed == nil || p.CPU.Samples == 0 {
		t.Fatalf("CPU %+v, unknown %v", p.CPU, p.Unknown)
	}
	sum, functions := *p.CPU.Unattributed, time.Duration(0)
	for _, l := range p.Lanes {
		sum += *l.CPU
	}
	for _, f := range p.Functions {
		functions += *f.CPU
	}
	if sum != *p.CPU.Process {
		t.Errorf("lanes and residual are %v, the process used %v", sum, *p.CPU.Process)
	}
	lanes := *p.CPU.Process - *p.CPU.Unattributed
	if off := (functions - lanes).Abs(); off > time.Duration(len(p.Functions)) { // each is rounded down
		t.Errorf("functions add up to %v, lanes to %v", functions, lanes)
	}
	if *p.CPU.Factor <= 0 || *p.CPU.Factor > 1 || *p.CPU.Unattributed < -time.Duration(len(p.Lanes)) {
		t.Errorf("factor %v, unattributed %v: the lanes exceed the process", *p.CPU.Factor, *p.CPU.Unattributed)
	}
	t.Logf("process %v, lanes %v, unattributed %v, factor %.3f, %d samples", *p.CPU.Process, lanes,
		*p.CPU.Unattributed, *p.CPU.Factor, p.CPU.Samples)
}

// TestEachKindOfGoroutineShows: the one that spins uses the CPU, the one that blocks waits for its channel without a
// sample, the one that allocates has allocated, and the workers are one group.
func TestEachKindOfGoroutineShows(t *testing.T) {
	p := analyzed(t, traced(t, threeKinds))
	spinning := rowNamed(t, p.Functions, "apm.spin")
	if spinning.CumulativeCPU == nil || *spinning.CumulativeCPU < *p.CPU.Process/4 || spinning.InLoop {
		t.Errorf("spin is %+v of a process that used %v", spinning, *p.CPU.Process)
	}
	blocking := rowNamed(t, p.Functions, "apm.waitForMessage")
	if blocking.Samples > 0 || blocking.Blocked[Chan] == 0 || blocking.Blocked[Sync] > 0 {
		t.Errorf("waitForMessage is %+v", blocking)
	}
	allocating := rowNamed(t, p.Functions, "apm.allocateMiBs")
	if allocating.Allocated == nil || *allocating.Allocated < 32<<20 {
		t.Errorf("allocateMiBs allocated %v", allocating.Allocated)
	}
	pool := rowNamed(t, p.Goroutines, "workqueue.ParallelizeUntil.func1")
	if pool.Lane != OtherWorkers || !pool.InLoop || *pool.Calls != workers || pool.AtOnce < 1 ||
		pool.AtOnce > p.Processors {
		t.Errorf("the workers are %+v on %d processors", pool, p.Processors)
	}
	if f := rowNamed(t, p.Functions, "workqueue.ParallelizeUntil.func1"); f.Calls == nil || *f.Calls != workers {
		t.Errorf("calls of the worker function: %+v", f)
	}
	if spinning.Calls != nil || p.Unknown["calls"] == "" {
		t.Errorf("calls of spin are %v, which samples cannot show", *spinning.Calls)
	}
}

// TestMissingPartsAreReasons: what the scheduler denied is a dash with the reason, never 0.
func TestMissingPartsAreReasons(t *testing.T) {
	var events bytes.Buffer
	if err := trace.Start(&events); err != nil {
		t.Fatal(err)
	}
	spin(20 * time.Millisecond)
	trace.Stop()
	p := analyzed(t, bundleOf(t, map[bundle.Kind]string{bundle.Trace: events.String(), bundle.CPU: "denied: 403",
		bundle.Allocs: "denied: 404", bundle.MetricsAfter: metricsNow()}))
	for value, why := range map[string]string{"cpu": "denied: 403", "allocated": "denied: 404",
		"process": "not recorded", "unattributed": "denied: 403", "cycles": "no scheduling loop"} {
		if !strings.Contains(p.Unknown[value], why) {
			t.Errorf("%s: the reason is %q, want %q", value, p.Unknown[value], why)
		}
	}
	if p.CPU.Process != nil || p.CPU.Unattributed != nil || p.CPU.Factor != nil || p.Cycles != nil {
		t.Errorf("values without a source: %+v, %+v", p.CPU, p.Cycles)
	}
	for _, rows := range [][]Row{p.Lanes, p.Goroutines, p.Functions} {
		for _, r := range rows {
			if r.CPU != nil || r.Allocated != nil {
				t.Errorf("%s has values without a source: %+v", r.Name, r)
			}
		}
	}
	p = analyzed(t, bundleOf(t, map[bundle.Kind]string{bundle.Trace: "denied: off", bundle.CPU: "denied: off"}))
	if p.Traced != nil || !strings.Contains(p.Unknown["lanes"], "denied: off") || len(p.Functions) > 0 {
		t.Errorf("a bundle without a trace: %+v", p)
	}
}

// TestADamagedTraceIsAnError: whatever is cut off or changed, there is no panic, and a cut trace gives no profile.
func TestADamagedTraceIsAnError(t *testing.T) {
	var events bytes.Buffer
	if err := trace.Start(&events); err != nil {
		t.Fatal(err)
	}
	spin(20 * time.Millisecond)
	trace.Stop()
	whole := events.Bytes()
	cuts := []int{16, 17} // behind the header
	for i := range 200 {
		cuts = append(cuts, i*len(whole)/200)
	}
	for _, at := range cuts {
		if err := newTracker().readTrace(bytes.NewReader(whole[:at])); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a trace", at, len(whole))
		}
		changed := bytes.Clone(whole)
		changed[at] ^= 0x55
		_ = newTracker().readTrace(bytes.NewReader(changed)) // it must return
	}
}

// TestExports: pprof's own reader, go tool pprof, and the required fields of speedscope's schema.
func TestExports(t *testing.T) {
	b := traced(t, threeKinds)
	x, err := ReadStacks(b)
	if err != nil {
		t.Fatal(err)
	}
	p := analyzed(t, b)
	checkPprof(t, x, p)
	checkToolPprof(t, x)
	checkSpeedscope(t, x, p)
}

func written(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
