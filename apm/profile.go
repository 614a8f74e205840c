// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Profile is the analysis of one bundle. Durations are in nanoseconds in JSON.
type Profile struct {
	Scheduler string    `json:"scheduler"`
	Program   string    `json:"program,omitempty"` // kumiki or kube-scheduler, by its functions; empty if unknown
	GoVersion string    `json:"goVersion,omitempty"`
	Began     time.Time `json:"began"`
	// Traced is the time that the trace covers; nil without a trace.
	Traced *time.Duration `json:"tracedNs,omitempty"`
	// Processors is GOMAXPROCS; 0 if it is not known.
	Processors int       `json:"processors,omitempty"`
	CPU        CPU       `json:"cpu"`
	Lanes      []Row     `json:"lanes"`
	Goroutines []Row     `json:"goroutines"`
	Functions  []Row     `json:"functions"`
	Plugins    []Row     `json:"plugins,omitempty"`
	Cycles     *Cycles   `json:"cycles,omitempty"`
	Attempts   []Attempt `json:"attempts,omitempty"`
	// Work is what kumiki's core did during the recording; nil for another scheduler.
	Work *record.WorkReport `json:"work,omitempty"`
	// Regret is by how much the nodes that were chosen score below the best ones. Analyze does not set it, because it
	// takes a replay; nil if it is not known.
	Regret *record.Regret `json:"regret,omitempty"`
	// Unknown are the values that are nil: name of the value -> reason.
	Unknown map[string]string `json:"unknown,omitempty"`
	// Notes are what a reader must know to interpret the values.
	Notes []string `json:"notes,omitempty"`
}

// CPU is the CPU time of the process and what it was compared with.
type CPU struct {
	// Process is what the process used between the two scrapes of its metrics.
	Process *time.Duration `json:"processNs,omitempty"`
	// Executing is the time that goroutines were running or in system calls with a processor.
	Executing time.Duration `json:"executingNs"`
	// Sampled is the CPU time that samples show, at Period each; Samples is their number.
	Sampled time.Duration `json:"sampledNs"`
	Samples int           `json:"samples"`
	// Factor is by what executing time is multiplied to get CPU time, over all lanes; nil without CPU samples.
	Factor *float64 `json:"factor,omitempty"`
	// Corrected is by how much lanes that are estimated from samples were changed, in all, to fit Process: it is within
	// two standard errors of the samples. Nil if nothing was compared.
	Corrected *time.Duration `json:"correctedNs,omitempty"`
	// Unattributed is Process minus the sum of the lanes: what is not an error of sampling. It may be negative.
	Unattributed *time.Duration `json:"unattributedNs,omitempty"`
}

// Period is the CPU time between two samples of a thread. /debug/pprof/profile has no other.
const Period = 10 * time.Millisecond

// Row has the values of a lane, of the goroutines with one start function, of a function or of a plugin.
type Row struct {
	Name string `json:"name"`
	// Lane is the lane of goroutines, and the lane in which a function has the most samples.
	Lane  Lane   `json:"lane,omitempty"`
	Lanes []Lane `json:"lanes,omitempty"` // of a function: all lanes with samples
	// InLoop reports whether the scheduling loop waits for it: it runs on the loop's goroutine or its workers.
	InLoop bool `json:"inLoop"`
	// AtOnce is how many goroutines of the lane executed at the same time at most, and Parallelism how many on average
	// while one did.
	AtOnce      int     `json:"atOnce,omitempty"`
	Parallelism float64 `json:"parallelism,omitempty"`
	// Calls is the number of calls, or of goroutines that were started; nil if it cannot be observed.
	Calls *int64 `json:"calls,omitempty"`
	// CPU is the own CPU time, CumulativeCPU includes called functions. Nil without CPU samples.
	CPU           *time.Duration `json:"cpuNs,omitempty"`
	CumulativeCPU *time.Duration `json:"cumulativeCpuNs,omitempty"`
	Samples       int            `json:"samples"`
	// Allocated is the number of bytes that the function itself allocated, estimated from the allocation profile.
	Allocated *int64 `json:"allocatedBytes,omitempty"`
	// Running to Assist are times of goroutines. For functions they count the goroutines that waited below it.
	Running        time.Duration `json:"runningNs,omitempty"`
	Runnable       time.Duration `json:"runnableNs"`
	Syscall        time.Duration `json:"syscallNs,omitempty"`
	BlockedSyscall time.Duration `json:"blockedSyscallNs,omitempty"`
	Blocked        Blocked       `json:"blockedNs,omitempty"`
	Assist         time.Duration `json:"gcAssistNs,omitempty"`
}

// Wait returns all time that goroutines of the row did not execute.
func (r *Row) Wait() time.Duration {
	sum := r.Runnable + r.BlockedSyscall
	for _, d := range r.Blocked { // order: a sum
		sum += d
	}
	return sum
}

// Blocked is the time that goroutines waited: component -> time.
type Blocked map[Component]time.Duration

// Component is what a goroutine waits for.
type Component string

// The components. Sync contains mutexes, wait groups and conditions.
const (
	Sync    Component = "sync"
	Chan    Component = "chan"
	Select  Component = "select"
	Network Component = "network"
	Sleep   Component = "sleep"
	GC      Component = "gc"
	Other   Component = "other"
)

// componentOfFunction are functions that show the component of a goroutine that waits since before the trace, for which
// the trace has no reason: prefix of a function -> component. The innermost function on the stack decides.
var componentOfFunction = []struct {
	prefix    string
	component Component
}{
	{"runtime.selectgo", Select}, {"runtime.chanrecv", Chan}, {"runtime.chansend", Chan},
	{"runtime.netpollblock", Network}, {"internal/poll.runtime_pollWait", Network}, {"sync.", Sync},
	{"internal/sync.", Sync}, {"runtime.semacquire", Sync}, {"time.Sleep", Sleep}, {"runtime.gcBgMarkWorker", GC},
	{"runtime.bgsweep", GC}, {"runtime.bgscavenge", GC},
}

// componentOf maps the reasons of Go's execution trace: reason -> component. Unlisted ones are Other.
var componentOf = map[string]Component{
	"sync": Sync, "sync.(*Cond).Wait": Sync, "chan send": Chan, "chan receive": Chan, "select": Select,
	"network": Network, "sleep": Sleep, "GC mark assist wait for work": GC, "GC background sweeper wait": GC,
	"wait until GC ends": GC, "GC weak to strong wait": GC,
}

// Cycles are the scheduling cycles that placed a pod, as seen from outside: each one ends when the scheduling loop
// starts the goroutine that binds the pod.
type Cycles struct {
	// Placed is the number of cycles that placed a pod; Measured of them began within the trace.
	Placed   int `json:"placed"`
	Measured int `json:"measured"`
	// Total is the time of the measured cycles, from the end of the wait for a pod, or of the cycle before, to the
	// start of the binding goroutine; Median and P99 are of single cycles.
	Total  time.Duration `json:"totalNs"`
	Median time.Duration `json:"medianNs"`
	P99    time.Duration `json:"p99Ns"`
	// Idle is how long the loop waited for a pod. Elsewhere is the rest of the trace: attempts that placed no pod, and
	// what was cut off by the ends of the trace.
	Idle      time.Duration `json:"idleNs"`
	Elsewhere time.Duration `json:"elsewhereNs"`
	// Algorithm is the scheduler's own measurement of these cycles between the two scrapes,
	// scheduling_algorithm_duration_seconds: its sum and its count.
	Algorithm      *time.Duration `json:"algorithmNs,omitempty"`
	AlgorithmCount *int64         `json:"algorithmCount,omitempty"`
}

// Attempt is a number of scheduling attempts between the two scrapes, by result.
type Attempt struct {
	Result string `json:"result"`
	Count  int64  `json:"count"`
}

// Order is by what rows are sorted.
type Order string

// The orders. Each is descending.
const (
	ByCPU        Order = "cpu"
	ByCumulative Order = "cum"
	ByWait       Order = "wait"
)
