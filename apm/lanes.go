// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"slices"
	"strings"
)

// Lane is a part of a scheduler to which a goroutine belongs as a whole.
type Lane string

// The lanes. Workers are goroutines that the scheduling loop starts and waits for.
const (
	Loop          Lane = "loop"
	FilterWorkers Lane = "filter workers"
	ScoreWorkers  Lane = "score workers"
	OtherWorkers  Lane = "other workers"
	Binding       Lane = "binding"
	Informers     Lane = "informers"
	Events        Lane = "events"
	Client        Lane = "API client"
	Serving       Lane = "serving"
	Collector     Lane = "GC"
	Runtime       Lane = "runtime"
	Profiler      Lane = "profiler"
	OtherLane     Lane = "other"
	// UnknownLane has goroutines without any stack in the trace.
	UnknownLane Lane = "unknown stack"
)

// laneOrder is the order in which lanes are shown.
var laneOrder = []Lane{Loop, FilterWorkers, ScoreWorkers, OtherWorkers, Binding, Informers, Events, Client, Serving,
	Collector, Runtime, Profiler, OtherLane, UnknownLane}

// inLoop reports whether the scheduling loop waits for a lane.
func (l Lane) inLoop() bool {
	return l == Loop || l == FilterWorkers || l == ScoreWorkers || l == OtherWorkers
}

// Prefixes of functions by which goroutines are recognised.
const (
	upstream  = "k8s.io/kubernetes/pkg/scheduler."
	ours      = "github.com/kumiki-scheduler/kumiki/"
	worker    = "k8s.io/client-go/util/workqueue.ParallelizeUntil.func"
	scheduler = upstream + "(*Scheduler)."
)

// rule assigns goroutines to a lane by prefixes of function names.
type rule struct {
	lane Lane
	// start are prefixes of the function with which the goroutine begins, anywhere those of any function on a stack.
	start, anywhere []string
}

// rules are tried in order; the first that matches decides. Start functions come before functions on the stack: a
// goroutine that binds a pod is binding, whatever it calls.
var rules = []rule{
	{lane: Profiler, start: []string{"runtime/trace.", "runtime/pprof.", "runtime.traceStartReadCPU",
		"runtime.(*traceAdvancerState)", "runtime.(*wakeableSleep)"},
		anywhere: []string{"net/http/pprof.", "runtime/trace.Start", "runtime/pprof.StartCPUProfile"}},
	{lane: Collector, start: []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge",
		"runtime.forcegchelper", "runtime.runFinalizers", "runtime.runfinq", "runtime.runCleanups"}},
	// Of a goroutine that began before the trace, the wrapper of the go statement may be shown.
	{lane: Binding, start: []string{scheduler + "runBindingCycle", scheduler + "scheduleOnePod.gowrap",
		scheduler + "submitPodGroupAlgorithmResult.gowrap", ours + "kube/effects."},
		anywhere: []string{"k8s.io/kubernetes/pkg/scheduler/backend/api_dispatcher."}},
	{lane: Loop, anywhere: []string{scheduler + "ScheduleOne", ours + "kube.(*Loop).Run"}},
	{lane: Client, start: []string{"golang.org/x/net/http2.(*ClientConn)", "golang.org/x/net/http2.(*clientStream)",
		"golang.org/x/net/http2.(*Transport)", "net/http.(*persistConn)", "net/http.(*Transport)",
		"net/http.(*http2ClientConn)", "net/http.(*http2clientStream)", "net/http.(*http2Transport)",
		"net/http/internal/http2.(*ClientConn)", "net/http/internal/http2.(*clientStream)",
		"net/http/internal/http2.(*Transport)"}},
	{lane: Serving, start: []string{"golang.org/x/net/http2.(*serverConn)", "net/http.(*conn)",
		"net/http.(*connReader)", "net/http.(*Server)", "net/http.(*http2serverConn)",
		"net/http/internal/http2.(*serverConn)"},
		anywhere: []string{"net/http.(*Server).Serve"}},
	{lane: Events, anywhere: []string{"k8s.io/client-go/tools/events.", "k8s.io/client-go/tools/record.",
		"k8s.io/apimachinery/pkg/watch.(*Broadcaster)"}},
	{lane: Informers, anywhere: []string{"k8s.io/client-go/tools/cache.", "k8s.io/apimachinery/pkg/watch.",
		"k8s.io/client-go/rest/watch.", ours + "kube/intake."}},
}

// workerLanes name the lane of workers by the function that started them, the innermost first.
var workerLanes = []struct {
	lane     Lane
	creators []string
}{
	{FilterWorkers, []string{scheduler + "findNodesThatPassFilters"}},
	{ScoreWorkers, []string{upstream + "prioritizeNodes",
		"k8s.io/kubernetes/pkg/scheduler/framework/runtime.(*frameworkImpl).RunScorePlugins"}},
}

// waitPackage has start functions that call a function in a loop.
const waitPackage = "k8s.io/apimachinery/pkg/util/wait."

// generic are start functions whose goroutines do anything, so that only a later stack shows the lane: loops around any
// function, and handlers of requests.
var generic = []string{waitPackage, "golang.org/x/net/http2.(*serverConn).runHandler",
	"net/http.(*conn).serve", "net/http.(*http2serverConn).runHandler",
	"net/http/internal/http2.(*serverConn).runHandler"}

// laneOf returns the lane of a goroutine by its start function, one of its stacks (innermost function first) and the
// stack that created it. It reports false if a later stack may show more.
func laneOf(start string, stack, creator []string) (Lane, bool) {
	if strings.HasPrefix(start, worker) {
		return laneOfWorker(creator), true
	}
	vague := hasPrefix(start, generic)
	for _, r := range rules {
		if !vague && hasPrefix(start, r.start) ||
			slices.ContainsFunc(stack, func(f string) bool { return hasPrefix(f, r.anywhere) }) {
			return r.lane, true
		}
	}
	switch {
	case start == "":
		return UnknownLane, false
	case vague && !strings.HasPrefix(start, waitPackage):
		return Serving, false
	case strings.HasPrefix(start, "runtime.") && start != "runtime.main":
		return Runtime, true
	}
	return OtherLane, false
}

// laneOfWorker returns the lane of a worker of the parallelizer by the stack of its creator.
func laneOfWorker(creator []string) Lane {
	for _, w := range workerLanes {
		if slices.ContainsFunc(creator, func(f string) bool { return hasPrefix(f, w.creators) }) {
			return w.lane
		}
	}
	return OtherWorkers
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// pluginRoots are the trees of packages in which each package is a plugin, or plugins of one subject.
var pluginRoots = []string{"k8s.io/kubernetes/pkg/scheduler/framework/plugins/", ours + "core/plugins/"}

// pluginOf returns the package of the innermost plugin on a stack, relative to its tree; empty if there is none.
func pluginOf(stack []string) string {
	for _, f := range stack {
		for _, root := range pluginRoots {
			if rest, ok := strings.CutPrefix(f, root); ok {
				slash := strings.LastIndexByte(rest, '/') + 1
				if dot := strings.IndexByte(rest[slash:], '.'); dot > 0 {
					return rest[:slash+dot]
				}
			}
		}
	}
	return ""
}

// programOf returns which scheduler a function belongs to; empty if it belongs to none.
func programOf(function string) string {
	switch {
	case strings.HasPrefix(function, scheduler):
		return "kube-scheduler"
	case strings.HasPrefix(function, ours+"kube.(*Loop).Run"):
		return "kumiki"
	}
	return ""
}
