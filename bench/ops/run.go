// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

const (
	// defaultCreators is how many objects are created concurrently (upstream: scheduler_perf uses 30).
	defaultCreators = 30
	// defaultPatience is how long a wait continues without progress.
	defaultPatience = 60 * time.Second
	// lookEvery is how often a wait reports its progress.
	lookEvery = time.Second
)

// ClusterArgs are the arguments with which a local cluster (internal/testcluster, Options.Args) is one for workloads: without
// the admission plugins that upstream's has not either (kubernetes, test/integration/util). Its workloads set priorities as
// numbers, which Priority refuses; with ServiceAccount and StorageObjectInUseProtection, objects would not be as their
// templates say; TaintNodesByCondition keeps pods from every new node until a controller comes by.
func ClusterArgs() []string {
	return []string{"--apiserver-arg=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority,StorageObjectInUseProtection"}
}

// Clock is the clock of the operations.
type Clock interface {
	Now() time.Time
	// After is a channel that gets a value when d has passed.
	After(d time.Duration) <-chan time.Time
}

// machine is the clock of this machine.
type machine struct{}

func (machine) Now() time.Time                         { return time.Now() }
func (machine) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Env is the environment of a run. Client, Dynamic and Watch must be set.
type Env struct {
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Watch is made by NewWatch, for one run. Run starts and ends it; it can be read while the run goes on and after it.
	Watch *Watch
	// Clock is nil for that of the machine.
	Clock Clock
	// Progress, if not nil, receives the progress of the run, from one goroutine at a time.
	Progress func(Progress)
	// Collect, if not nil, is called when a measurement begins, and the returned function when it ends. If a run
	// fails before that, the context ends instead.
	Collect func(context.Context, Collection) (stop func(context.Context) error, err error)
	// Profile, if not nil, begins a CPU profile of the scheduler, and the returned function ends it and writes it to
	// the path. If a run fails before that, the context ends instead. If Profile is nil, the operations for profiles
	// do nothing.
	Profile func(ctx context.Context, path string) (stop func(context.Context) error, err error)
	// Rate is how many pods per second each operation creates, even if the API server accepts them more slowly; 0
	// means as many as the API server accepts.
	Rate float64
	// Creators is how many objects are created concurrently; 0 means 30.
	Creators int
	// Patience is how long a run continues without progress of the awaited pods, regardless of other pods; 0 means a
	// minute.
	Patience time.Duration
}

// Progress is the progress of a run.
type Progress struct {
	Op, Ops     int // the operation that is running, of how many
	Opcode      string
	Done, Total int // pods that are where the operation waits for them to be; 0 of 0 when it waits for none
}

// Collection is a measurement from one operation to another.
type Collection struct {
	// Op is its first operation. Name is that of the operation, or the namespace of its pods.
	Op   int
	Name string
	// Namespaces and Labels select the pods whose throughput is measured.
	Namespaces []string
	Labels     map[string]string
}

// Window is when a collection was measured.
type Window struct {
	Collection
	From, To time.Time
}

// Step is when an operation ran.
type Step struct {
	Opcode   string
	From, To time.Time
}

// Outcome is the result of a run, in addition to the observations of its Watch.
type Outcome struct {
	Steps   []Step // one for each operation that ended well
	Windows []Window
}

// Unfinished is the error of a wait that ended because there was no more progress.
type Unfinished struct {
	What     string // pods or pod groups
	Stage    workload.Stage
	Left, Of int
	Names    []string // some of them, namespace/name
	Why      string   // what was said of the first of them that something was said of
	Patience time.Duration
}

// Error returns how many are missing, and names some.
func (u *Unfinished) Error() string {
	text := fmt.Sprintf("%d of %d %s are not %s and none of them came further in %s: %v", u.Left, u.Of, u.What, u.Stage, u.Patience, u.Names)
	if u.Why != "" {
		text += ": " + u.Why
	}
	return text
}

// errEnded is the cause with which background work ends at the end of its plan.
var errEnded = errors.New("the plan has ended")

// besideError is a failure in the background.
type besideError struct{ error }

// run is a plan in execution.
type run struct {
	Env
	plan   *workload.Plan
	mapper *restmapper.DeferredDiscoveryRESTMapper
	out    Outcome
	// index is the operation that runs; it and the fields below belong to the goroutine of Run.
	index      int
	namespaces map[string]bool // name -> is there
	collecting func() error    // ends what is being measured; nil when nothing is
	profiling  func() error    // ends the profile; nil when there is none
	background sync.WaitGroup
	fail       context.CancelCauseFunc // ends the run
}

// Run runs the operations of a plan one after the other and returns when the last has ended and what runs in the
// background was stopped. The outcome is valid up to where the run got, even if there is an error.
func Run(ctx context.Context, env Env, plan workload.Plan) (Outcome, error) {
	if env.Clock == nil {
		env.Clock = machine{}
	}
	if env.Creators == 0 {
		env.Creators = defaultCreators
	}
	if env.Patience == 0 {
		env.Patience = defaultPatience
	}
	r := &run{
		Env: env, plan: &plan, namespaces: map[string]bool{},
		mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(env.Client.Discovery())),
	}
	ctx, r.fail = context.WithCancelCause(ctx)
	r.background.Go(func() { r.Watch.follow(ctx, r.Client) })
	err := r.all(ctx)
	r.fail(errEnded)
	r.background.Wait()
	// The failure in the background caused the failure of the operation in the foreground, so it is the one to
	// report.
	var beside besideError
	if errors.As(context.Cause(ctx), &beside) {
		err = beside.error
	}
	return r.out, err
}

func (r *run) all(ctx context.Context) error {
	select {
	case <-r.Watch.synced:
	case <-ctx.Done():
		return fmt.Errorf("watch pods: %w", context.Cause(ctx))
	}
	for i, op := range r.plan.Ops {
		r.index = i
		r.tell(0, 0)
		step := Step{Opcode: op.Opcode(), From: r.Clock.Now()}
		if err := r.do(ctx, op); err != nil {
			return r.named(i, err)
		}
		step.To = r.Clock.Now()
		r.out.Steps = append(r.out.Steps, step)
	}
	if r.collecting != nil {
		return errors.New("the plan ends and metrics are still being collected")
	}
	if r.profiling != nil {
		return errors.New("the plan ends and a profile is still being collected")
	}
	return nil
}

// named puts the operation before its error.
func (r *run) named(op int, err error) error {
	return fmt.Errorf("op %d (%s): %w", op, r.plan.Ops[op].Opcode(), err)
}

func (r *run) tell(done, total int) {
	if r.Progress != nil {
		r.Progress(Progress{Op: r.index, Ops: len(r.plan.Ops), Opcode: r.plan.Ops[r.index].Opcode(), Done: done, Total: total})
	}
}

func (r *run) do(ctx context.Context, op workload.Op) error {
	switch op := op.(type) {
	case *workload.CreateNodes:
		return r.createNodes(ctx, op)
	case *workload.CreateNamespaces:
		return r.createNamespaces(ctx, op)
	case *workload.CreatePods:
		return r.createPods(ctx, op, op.Namespace)
	case *workload.CreatePodSets:
		return r.createPodSets(ctx, op)
	case *workload.DeletePods:
		return r.deletePods(ctx, op)
	case *workload.Churn:
		return r.churn(ctx, op)
	case *workload.CreateAny:
		return r.createAny(ctx, op.Namespace, op.Count, &op.Template)
	case *workload.UpdateAny:
		return r.updateAny(ctx, op)
	case *workload.CreateResourceClaims:
		return r.createAny(ctx, op.Namespace, op.Count, &op.Template)
	case *workload.CreateResourceDriver:
		return r.createDriver(ctx, op)
	case *workload.AllocResourceClaims:
		return r.allocClaims(ctx, op)
	case *workload.CreatePodGroups:
		return r.createGroups(ctx, op)
	case *workload.WaitForPodGroups:
		return r.waitForGroups(ctx, op)
	case *workload.Barrier:
		return r.barrier(ctx, op)
	case *workload.Sleep:
		return r.pause(ctx, op.Duration)
	case *workload.StartCollectingMetrics:
		return r.startCollecting(ctx, Collection{Op: r.index, Name: op.Name, Namespaces: op.Namespaces, Labels: op.Labels})
	case *workload.StopCollectingMetrics:
		return r.stopCollecting()
	case *workload.StartCollectingProfile:
		return r.startProfile(ctx, op.Path)
	case *workload.StopCollectingProfile:
		return r.stopProfile()
	default:
		return fmt.Errorf("no code runs a %T", op)
	}
}

// inBackground runs work that ends with the plan. When it fails, so does the run.
func (r *run) inBackground(ctx context.Context, work func(context.Context) error) {
	op := r.index
	r.background.Go(func() {
		if err := work(ctx); err != nil && ctx.Err() == nil {
			r.fail(besideError{r.named(op, err)})
		}
	})
}

// each calls do for 0 to n-1, started in this order and some of them concurrently, until one fails.
func (r *run) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(r.Creators, n) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					end(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

// inTurn calls do for 0 to n-1, perSecond of them per second, the first after one interval; if perSecond is 0,
// without waiting. Intervals are counted from the start: a late call does not delay the following ones.
func (r *run) inTurn(ctx context.Context, n, perSecond int, do func(i int) error) error {
	began := r.Clock.Now()
	for i := range n {
		if perSecond > 0 {
			due := began.Add(time.Duration(float64(i+1) / float64(perSecond) * float64(time.Second)))
			if err := r.until(ctx, due); err != nil {
				return err
			}
		}
		if err := do(i); err != nil {
			return err
		}
	}
	return nil
}

// until waits for a time, which may have passed.
func (r *run) until(ctx context.Context, due time.Time) error {
	if d := due.Sub(r.Clock.Now()); d > 0 {
		return r.pause(ctx, d)
	}
	return context.Cause(ctx)
}

func (r *run) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-r.Clock.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startCollecting begins to measure.
func (r *run) startCollecting(ctx context.Context, c Collection) error {
	if r.collecting != nil {
		return errors.New("metrics are being collected already")
	}
	stop := func(context.Context) error { return nil }
	if r.Collect != nil {
		var err error
		if stop, err = r.Collect(ctx, c); err != nil {
			return fmt.Errorf("start collecting metrics: %w", err)
		}
	}
	from := r.Clock.Now()
	r.collecting = func() error {
		r.out.Windows = append(r.out.Windows, Window{Collection: c, From: from, To: r.Clock.Now()})
		if err := stop(ctx); err != nil {
			return fmt.Errorf("stop collecting metrics: %w", err)
		}
		return nil
	}
	return nil
}

// stopCollecting ends what startCollecting began.
func (r *run) stopCollecting() error {
	if r.collecting == nil {
		return errors.New("no metrics are being collected")
	}
	stop := r.collecting
	r.collecting = nil
	return stop()
}

// startProfile begins a profile of the scheduler.
func (r *run) startProfile(ctx context.Context, path string) error {
	if r.profiling != nil {
		return errors.New("a profile is being collected already")
	}
	r.profiling = func() error { return nil }
	if r.Profile == nil {
		return nil
	}
	stop, err := r.Profile(ctx, path)
	if err != nil {
		return fmt.Errorf("start collecting the profile: %w", err)
	}
	r.profiling = func() error {
		if err := stop(ctx); err != nil {
			return fmt.Errorf("stop collecting the profile: %w", err)
		}
		return nil
	}
	return nil
}

// stopProfile ends what startProfile began.
func (r *run) stopProfile() error {
	if r.profiling == nil {
		return errors.New("no profile is being collected")
	}
	stop := r.profiling
	r.profiling = nil
	return stop()
}
