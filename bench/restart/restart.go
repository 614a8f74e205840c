// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/standin"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// The two ways of starting that are measured.
const (
	// FirstStart is a process that nothing came before.
	FirstStart = "first start"
	// AfterKill is the process that follows one that was killed with SIGKILL.
	AfterKill = "after kill -9"
)

func NewCommand() *cobra.Command {
	var o testbed.Options
	var format string
	var fake bool
	cmd := &cobra.Command{
		Use:   "restart",
		Short: "Measure the start of schedulers in a cluster full of bound pods",
		Long: `Measure the start of schedulers in a cluster full of bound pods.

One local cluster (API server and etcd, without other load) holds the pods, which are created bound. One more pod waits
for a scheduler. Each scheduler is started, binds that pod, is killed with SIGKILL, and is started again with another
pod waiting; the schedulers take turns. Times are measured from the start of the process, without leader election: a lease
that was not released has to expire first, which takes the same time for all.

With --fake, a simulated API server inside this program replaces the local cluster: it is filled in seconds, costs less
than an API server beside the scheduler, and knows when it sent the last list.`,
		Example: `  kumiki bench restart
  kumiki bench restart --fake --pods 150000
  kumiki bench restart --nodes 500 --pods 5000 --runs 1 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return usage.Errorf("output %q is unknown; there are table, json", format)
			}
			o.Progress = cmd.ErrOrStderr()
			restart := Run
			if fake {
				restart = RunStandin
			}
			report, err := restart(cmd.Context(), o)
			if err != nil {
				return err
			}
			return report.write(cmd.OutOrStdout(), format)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	fs.IntVar(&o.Pods, "pods", 50000, "number of bound pods")
	fs.IntVar(&o.Rounds, "runs", 3, "number of rounds; each starts each scheduler twice")
	fs.BoolVar(&fake, "fake", false, "use a simulated API server instead of a local cluster")
	usage.Schedulers(fs, &o.Schedulers, []string{report.Kumiki, report.Upstream},
		"measure these schedulers, in this order")
	fs.Float32Var(&o.QPS, "qps", testbed.DefaultQPS, "maximum requests per second of each client of each scheduler")
	fs.IntVar(&o.Burst, "burst", testbed.DefaultBurst, "maximum burst of requests of each client of each scheduler")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "abort a start after this time")
	fs.StringVarP(&format, "output", "o", "table", "output format: table or json")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "path of the kumiki `program` (default: this program)")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "",
		"path of the kube-scheduler `program` (default: kube-scheduler in the directory of this program)")
	fs.StringVar(&o.ProfileDir, "profile-dir", "",
		"write profiles of each scheduler to this `directory`: CPU of its first five seconds, memory in use, "+
			"allocations since the start")
	return cmd
}

// Start is the result of one start of one scheduler.
type Start struct {
	Scheduler string `json:"scheduler"`
	Round     int    `json:"round"`
	// How is FirstStart or AfterKill.
	How string `json:"how"`
	// ReadySeconds is the time from the start of the process until /readyz succeeded, BoundSeconds until the waiting
	// pod was bound.
	ReadySeconds float64 `json:"readySeconds"`
	BoundSeconds float64 `json:"boundSeconds"`
	// AfterListsSeconds is the part of BoundSeconds after the last of the lists; 0 if unknown.
	AfterListsSeconds float64 `json:"afterListsSeconds,omitempty"`
	// CPU seconds of the scheduler, and of API server and etcd, until then.
	CPU        float64 `json:"cpuSeconds"`
	ServersCPU float64 `json:"serversCPUSeconds"`
	// ReadBytes is what the process read by then: the lists as they came over the wire, encrypted, and a few files.
	ReadBytes int64 `json:"readBytes"`
	// PeakRSS and FinalRSS in bytes, some seconds later.
	PeakRSS  int64 `json:"peakRSSBytes"`
	FinalRSS int64 `json:"finalRSSBytes"`
	// Lists are what the API server sent, by resource.
	Lists Sent `json:"lists"`
	// Others is the share of the machine used by processes other than scheduler, API server, etcd and this program.
	Others float64 `json:"othersShare"`
}

// settleTime is how long a scheduler continues to run before its memory is read: the garbage of its lists is
// collected by then.
const settleTime = 5 * time.Second

// Run measures starts in a cluster with o.Nodes nodes and o.Pods bound pods.
func Run(ctx context.Context, o testbed.Options) (_ Report, err error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.Launch == nil {
		o.Launch = testcluster.Launch
	}
	if err := completeRestart(&o); err != nil {
		return Report{}, err
	}
	fmt.Fprintf(o.Progress, "starting a cluster of %d nodes\n", o.Nodes)
	c, err := o.Launch(ctx, testcluster.Options{
		NodeSpec: fmt.Sprintf(nodeSpec, o.Nodes), PodStages: "none", NoKubeletAdmission: true, NoHeartbeats: true,
	})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	b, err := testbed.NewCluster(c)
	if err != nil {
		return Report{}, err
	}
	defer b.Clients.Close()
	f := &localCluster{Cluster: b, o: o}
	if err := prepare(ctx, b); err != nil {
		return Report{}, err
	}
	if err := f.fill(ctx); err != nil {
		return Report{}, err
	}
	return startAll(ctx, o, f)
}

// fullCluster is a cluster full of bound pods.
type fullCluster interface {
	// kubeconfigs returns the kubeconfigs for schedulers and for administrators.
	kubeconfigs() (scheduler, admin string)
	// wait adds a pod that waits for a scheduler.
	wait(ctx context.Context, p *corev1.Pod) error
	isBound(ctx context.Context, name string) (bool, error)
	// sent returns how much was sent so far to watching clients.
	sent(context.Context) (Sent, error)
	// listed returns when the last of the newest lists was completely sent; zero if unknown.
	listed() time.Time
	// serverPids are the processes that serve, other than this one.
	serverPids() []int
}

// starts starts schedulers in turn.
type starts struct {
	fullCluster
	o      testbed.Options
	probes int // pods that waited for a scheduler, so far
}

// startAll is all starts of all schedulers.
func startAll(ctx context.Context, o testbed.Options, g fullCluster) (Report, error) {
	f := &starts{fullCluster: g, o: o}
	var all []Start
	for round := 1; round <= o.Rounds; round++ {
		for _, name := range o.Schedulers {
			both, err := f.startTwice(ctx, name, round)
			if err != nil {
				return Report{}, fmt.Errorf("%s, round %d: %w", name, round, err)
			}
			all = append(all, both...)
		}
	}
	return summarizeStarts(o, all), nil
}

// localCluster is a local cluster with bound pods.
type localCluster struct {
	*testbed.Cluster
	o testbed.Options
}

func (f *localCluster) kubeconfigs() (scheduler, admin string) {
	return f.Local.SchedulerKubeconfig, f.Local.Kubeconfig
}

func (f *localCluster) wait(ctx context.Context, p *corev1.Pod) error {
	_, err := f.Client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}

func (f *localCluster) isBound(ctx context.Context, name string) (bool, error) {
	p, err := f.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("get pod %s: %w", name, err)
	}
	return p.Spec.NodeName != "", nil
}

func (f *localCluster) sent(ctx context.Context) (Sent, error) { return sentNow(ctx, f.Client) }

func (f *localCluster) listed() time.Time { return time.Time{} }

func (f *localCluster) serverPids() []int { return f.Servers }

// fill creates the bound pods.
func (f *localCluster) fill(ctx context.Context) error {
	nodes, err := f.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	pods := f.Client.CoreV1().Pods(namespace)
	var next, done atomic.Int64
	var failed atomic.Pointer[error]
	var creating sync.WaitGroup
	began := time.Now()
	for range creators {
		creating.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= f.o.Pods {
					return
				}
				p := standin.ServicePod(namespace, podName(i), nodes.Items[i%len(nodes.Items)].Name, i)
				if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
					err = fmt.Errorf("create pod %s: %w", p.Name, err)
					failed.Store(&err)
					return
				}
				if n := done.Add(1); n%5000 == 0 {
					fmt.Fprintf(f.o.Progress, "%d bound pods after %.0f s\n", n, time.Since(began).Seconds())
				}
			}
		})
	}
	creating.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// startTwice starts a scheduler, kills it, and starts it again.
func (f *starts) startTwice(ctx context.Context, name string, round int) ([]Start, error) {
	dir, err := os.MkdirTemp("", "kumiki-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var both []Start
	for _, how := range []string{FirstStart, AfterKill} {
		st, err := f.start(ctx, name, dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", how, err)
		}
		st.Scheduler, st.Round, st.How = name, round, how
		fmt.Fprintf(f.o.Progress, "%s, round %d, %s: ready after %.2f s, bound after %.2f s, %.1f CPU seconds, %.0f MiB read, %.0f MiB at most, others %.0f%%\n",
			name, round, how, st.ReadySeconds, st.BoundSeconds, st.CPU, report.Mebi(st.ReadBytes),
			report.Mebi(st.PeakRSS), 100*st.Others)
		both = append(both, st)
	}
	return both, nil
}

// start starts a scheduler with one pod waiting for it, and kills it when that has been measured.
func (f *starts) start(ctx context.Context, name, dir string) (Start, error) {
	ctx, cancel := context.WithTimeout(ctx, f.o.Timeout)
	defer cancel()
	f.probes++
	probe := standin.Pod(namespace, fmt.Sprintf("waits-%03d", f.probes))
	if err := f.wait(ctx, probe); err != nil {
		return Start{}, fmt.Errorf("create the pod that waits: %w", err)
	}
	if err := testbed.Pause(ctx, time.Second); err != nil {
		return Start{}, err
	}
	sent, err := f.sent(ctx)
	if err != nil {
		return Start{}, err
	}
	theirs, ours := f.kubeconfigs()
	began := time.Now()
	s, err := testbed.Start(ctx, f.o, name, theirs, dir)
	if err != nil {
		return Start{}, err
	}
	defer s.Close()
	pid := s.Cmd.Process.Pid
	before, err := testbed.ReadUsage(pid, f.serverPids())
	if err != nil {
		return Start{}, err
	}
	before.Scheduler = 0 // what it used between its start and now is its own
	if err := s.Connect(ours); err != nil {
		return Start{}, err
	}
	var st Start
	profiled := make(chan error, 1)
	go func() { profiled <- f.profileStart(ctx, s) }()
	if st.ReadySeconds, st.BoundSeconds, err = f.awaitBoth(ctx, s, probe.Name, began); err != nil {
		return Start{}, fmt.Errorf("%w\n%s", err, s.LogTail())
	}
	after, err := testbed.ReadUsage(pid, f.serverPids())
	if err != nil {
		return Start{}, err
	}
	if at := f.listed(); at.After(began) {
		st.AfterListsSeconds = st.BoundSeconds - at.Sub(began).Seconds()
	} else if since, ok := sinceLists(s); ok {
		st.AfterListsSeconds = since + st.BoundSeconds - st.ReadySeconds
	}
	used := after.Since(before)
	st.CPU, st.ServersCPU, st.Others = used.Scheduler, used.Servers, used.OthersShare()
	if st.ReadBytes, err = testbed.BytesRead(pid); err != nil {
		return Start{}, err
	}
	now, err := f.sent(ctx)
	if err != nil {
		return Start{}, err
	}
	st.Lists = now.since(sent)
	if err := testbed.Pause(ctx, settleTime); err != nil {
		return Start{}, err
	}
	if st.FinalRSS, st.PeakRSS, err = testbed.Memory(pid); err != nil {
		return Start{}, err
	}
	if err := errors.Join(<-profiled, f.profile(ctx, s)); err != nil {
		return Start{}, err
	}
	return st, s.Cmd.Process.Kill()
}

// sinceLists returns the time from the last list until the cluster is known, from the log of the scheduler. Only
// kumiki logs it.
func sinceLists(s *testbed.Scheduler) (seconds float64, ok bool) {
	text, err := os.ReadFile(s.Log)
	if err != nil {
		return 0, false
	}
	said := sinceListsLine.FindSubmatch(text)
	if said == nil {
		return 0, false
	}
	seconds, err = strconv.ParseFloat(string(said[1]), 64)
	return seconds, err == nil
}

var sinceListsLine = regexp.MustCompile(`"The cluster is known".* sinceLists=([0-9.e-]+)`)

// profileStart writes a profile of the first seconds, if profiles are requested.
func (f *starts) profileStart(ctx context.Context, s *testbed.Scheduler) error {
	if f.o.ProfileDir == "" {
		return nil
	}
	for s.Get(ctx, "/debug/pprof/", io.Discard) != nil { // who may see it, it has to learn first
		if err := testbed.Pause(ctx, askEvery); err != nil {
			return err
		}
	}
	return s.Profile(ctx, f.o.ProfileDir, int(settleTime.Seconds()))
}

// profile writes profiles of live memory and of allocations since the start, if profiles are requested.
func (f *starts) profile(ctx context.Context, s *testbed.Scheduler) error {
	if f.o.ProfileDir == "" {
		return nil
	}
	file, err := os.Create(filepath.Join(f.o.ProfileDir, s.Name+".heap.pprof"))
	if err != nil {
		return err
	}
	// This collection is only for the profile, after the measurement.
	return errors.Join(s.Get(ctx, "/debug/pprof/heap?gc=1", file), file.Close())
}

// askEvery is how often the scheduler and the API server are polled; it is the resolution of the times.
const askEvery = 10 * time.Millisecond

// awaitBoth returns the seconds after began when the scheduler was ready and when the pod was bound.
func (f *starts) awaitBoth(ctx context.Context, s *testbed.Scheduler, name string,
	began time.Time) (ready, bound float64, err error) {
	for ready == 0 || bound == 0 {
		if ready == 0 && s.Get(ctx, "/readyz", io.Discard) == nil {
			ready = time.Since(began).Seconds()
		}
		if bound == 0 {
			is, err := f.isBound(ctx, name)
			if err != nil {
				return 0, 0, err
			}
			if is {
				bound = time.Since(began).Seconds()
			}
		}
		select {
		case <-s.Ended:
			return 0, 0, fmt.Errorf("it ended: %w", s.ExitErr)
		case <-ctx.Done():
			return 0, 0, fmt.Errorf("ready %v, pod bound %v: %w", ready > 0, bound > 0, ctx.Err())
		case <-time.After(askEvery):
		}
	}
	return ready, bound, nil
}

// completeRestart fills in the programs and rejects schedulers that cannot be started in a full cluster.
func completeRestart(o *testbed.Options) error {
	if slices.Contains(o.Schedulers, report.Null) {
		return usage.Errorf("the null binder knows nothing of bound pods: it cannot be measured here")
	}
	return o.Complete()
}

const (
	namespace = "bench"
	// creators is how many pods are created concurrently (upstream: scheduler_perf uses 30).
	creators = 30
)

// nodeSpec is scheduler_perf's node: 4 cores, 32Gi, 110 pods.
const nodeSpec = `shapes:
- name: node
  count: %d
  capacity: {cpu: "4", memory: 32Gi, pods: "110"}
`

// podName is the name of a bound pod.
func podName(i int) string { return fmt.Sprintf("pod-%06d", i) }

// prepare creates the namespace and then ends all processes but API server and etcd, so that there is no other load
// during the measurement.
func prepare(ctx context.Context, b *testbed.Cluster) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := b.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	for {
		_, err := b.Client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("wait for the service account: %w", err)
		}
		if err := testbed.Pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return b.Quiesce(false)
}
