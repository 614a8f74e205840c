// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/standin"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// changes are the changes made to nodes, by name: nothing that a scheduler reads; a label that no pod asks for;
// capacity that no waiting pod has enough of.
var changes = map[string]func(n *corev1.Node, i int){ // name -> the change, which differs with i
	"heartbeat": func(n *corev1.Node, i int) {
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	},
	"label": func(n *corev1.Node, i int) { n.Labels["example.com/version"] = fmt.Sprint(i) },
	"room": func(n *corev1.Node, i int) {
		n.Status.Allocatable[corev1.ResourceMemory] = *resource.NewQuantity(32<<30+int64(i%1024)<<20, resource.BinarySI)
	},
}

// WaitingOptions select what to measure while pods wait.
type WaitingOptions struct {
	testbed.Options
	Waiting, Rate int
	Kinds         []string // names of changes
	Length        time.Duration
}

func NewWaitingCommand() *cobra.Command {
	var o WaitingOptions
	var format string
	cmd := &cobra.Command{
		Use:   "waiting",
		Short: "Measure nodes that change all the time while unschedulable pods wait",
		Long: `Measure nodes that change all the time while unschedulable pods wait.

Each scheduler is a process of its own against a simulated API server inside this program. After it has tried all
waiting pods, nodes change at a fixed rate, one after the other, and four times a second a pod is added that fits. Half
of the waiting pods request more CPU than any node has, half a label that no node has.`,
		Example: `  kumiki bench waiting
  kumiki bench waiting --scheduler kumiki --changes room --rate 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return usage.Errorf("output %q is unknown; there are table, json", format)
			}
			for _, kind := range o.Kinds {
				if changes[kind] == nil {
					return usage.Errorf("change %q is unknown; there are heartbeat, label, room", kind)
				}
			}
			o.Progress = cmd.ErrOrStderr()
			report, err := RunWaiting(cmd.Context(), o)
			if err != nil {
				return err
			}
			return report.Write(cmd.OutOrStdout(), format)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	fs.IntVar(&o.Pods, "pods", 10000, "number of bound pods")
	fs.IntVar(&o.Waiting, "waiting", 10000, "number of waiting pods")
	fs.IntVar(&o.Rate, "rate", 5000, "number of node changes per second")
	fs.StringSliceVar(&o.Kinds, "changes", []string{"heartbeat", "label", "room"},
		"measure these kinds of node changes: heartbeat, label, room (the memory of a node)")
	fs.DurationVar(&o.Length, "for", 10*time.Second, "duration of each kind of change")
	usage.Schedulers(fs, &o.Schedulers, []string{report.Kumiki, report.Upstream},
		"measure these schedulers, in this order")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "abort a scheduler after this time")
	fs.StringVarP(&format, "output", "o", "table", "output format: table or json")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "path of the kumiki `program` (default: this program)")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "",
		"path of the kube-scheduler `program` (default: kube-scheduler in the directory of this program)")
	fs.StringVar(&o.ProfileDir, "profile-dir", "",
		"write a CPU profile of each scheduler during the last kind of change to this `directory`")
	o.QPS, o.Burst, o.Rounds = testbed.DefaultQPS, testbed.DefaultBurst, 1
	return cmd
}

// Waited is the result of one scheduler for one kind of node changes.
type Waited struct {
	Scheduler string `json:"scheduler"`
	Change    string `json:"change"`
	// Rate is the number of changes per second.
	Rate float64 `json:"changesPerSecond"`
	// CPU is the share of one processor that the scheduler used.
	CPU float64 `json:"cpuShare"`
	// P50 and Max are of the seconds from the arrival of a pod that fits to its bind; Bound of Probes were bound at
	// all.
	P50    float64 `json:"p50Seconds"`
	Max    float64 `json:"maxSeconds"`
	Bound  int     `json:"bound"`
	Probes int     `json:"probes"`
	// Patches is how many pod statuses were written in that time.
	Patches int `json:"patches"`
	// PeakRSS in bytes, so far.
	PeakRSS int64   `json:"peakRSSBytes"`
	Others  float64 `json:"othersShare"`
}

// WaitingReport has all results.
type WaitingReport struct {
	Nodes   int      `json:"nodes"`
	Pods    int      `json:"pods"`
	Waiting int      `json:"waiting"`
	Waited  []Waited `json:"waited"`
}

// RunWaiting measures all schedulers, one after the other.
func RunWaiting(ctx context.Context, o WaitingOptions) (WaitingReport, error) {
	r := WaitingReport{Nodes: o.Nodes, Pods: o.Pods, Waiting: o.Waiting}
	if err := completeRestart(&o.Options); err != nil {
		return r, err
	}
	for _, name := range o.Schedulers {
		rows, err := waitWith(ctx, o, name)
		if err != nil {
			return r, fmt.Errorf("%s: %w", name, err)
		}
		r.Waited = append(r.Waited, rows...)
	}
	return r, nil
}

// hopeless is a pod that fits no node, or that asks for a label that no node has.
func hopeless(i int) *corev1.Pod {
	p := standin.Pod(namespace, fmt.Sprintf("hopeless-%06d", i))
	p.Labels = map[string]string{"app": fmt.Sprintf("hopeless-%02d", i%100)}
	if i%2 == 0 {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("64")
	} else {
		p.Spec.NodeSelector = map[string]string{"example.com/disk": "none"}
	}
	standin.AsStored(p)
	return p
}

func waitWith(ctx context.Context, o WaitingOptions, name string) (_ []Waited, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	f, err := newStandinCluster(o.Options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	for i := range o.Waiting {
		f.AddPod(hopeless(i))
	}
	s, err := testbed.Start(ctx, o.Options, name, f.file, f.dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := s.Connect(f.file); err != nil {
		return nil, err
	}
	began := time.Now()
	for f.Refused() < o.Waiting {
		if err := testbed.Pause(ctx, 100*time.Millisecond); err != nil {
			return nil, fmt.Errorf("%d of %d pods were tried: %w\n%s", f.Refused(), o.Waiting, err, s.LogTail())
		}
	}
	fmt.Fprintf(o.Progress, "%s: %d pods tried after %.1f s\n", name, o.Waiting, time.Since(began).Seconds())
	if err := testbed.Pause(ctx, settleTime); err != nil {
		return nil, err
	}
	var rows []Waited
	for i, kind := range o.Kinds {
		profiled := make(chan error, 1)
		if o.ProfileDir != "" && i == len(o.Kinds)-1 {
			go func() { profiled <- s.Profile(ctx, o.ProfileDir, int(o.Length.Seconds())) }()
		} else {
			profiled <- nil
		}
		row, err := f.change(ctx, o, s, kind)
		if err = errors.Join(err, <-profiled); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", kind, err, s.LogTail())
		}
		row.Scheduler = name
		fmt.Fprintf(o.Progress, "%s, %s: %.0f changes/s, %.0f%% of a processor, a pod that fits is bound after %.3f s, %.3f s at most, %d of %d\n",
			name, kind, row.Rate, 100*row.CPU, row.P50, row.Max, row.Bound, row.Probes)
		rows = append(rows, row)
	}
	return rows, nil
}

const (
	// beats is how many times per second changes and probes are sent.
	beats = 100
	// probesEach is how many beats pass between two pods that fit.
	probesEach = 25
)

// change changes nodes at the rate, and adds pods that fit.
func (f *standinCluster) change(ctx context.Context, o WaitingOptions, s *testbed.Scheduler,
	kind string) (Waited, error) {
	pid := s.Cmd.Process.Pid
	before, err := testbed.ReadUsage(pid, nil)
	if err != nil {
		return Waited{}, err
	}
	row := Waited{Change: kind, Patches: f.Counts().Patches}
	added := map[string]time.Time{} // probe -> when it was added
	began := time.Now()
	sent := 0
	for beat := 0; time.Since(began) < o.Length; beat++ {
		if beat%probesEach == 0 {
			p := standin.Pod(namespace, fmt.Sprintf("fits-%s-%06d", kind, beat))
			standin.AsStored(p)
			added[p.Name] = time.Now()
			f.AddPod(p)
		}
		for due := int(time.Since(began).Seconds() * float64(o.Rate)); sent < due; sent++ {
			f.ChangeNode(sent%o.Nodes, func(n *corev1.Node) { changes[kind](n, sent/o.Nodes+1) })
		}
		if err := testbed.Pause(ctx, time.Second/beats); err != nil {
			return Waited{}, err
		}
	}
	length := time.Since(began).Seconds()
	after, err := testbed.ReadUsage(pid, nil)
	if err != nil {
		return Waited{}, err
	}
	used := after.Since(before)
	row.Rate, row.CPU, row.Others = float64(sent)/length, used.Scheduler/length, used.OthersShare()
	row.Patches = f.Counts().Patches - row.Patches
	if err := testbed.Pause(ctx, settleTime); err != nil {
		return Waited{}, err
	}
	var took []float64
	for name, at := range added { // order: sorted below
		if bound := f.Bound(namespace, name); !bound.IsZero() {
			took = append(took, bound.Sub(at).Seconds())
		}
	}
	row.Probes, row.Bound = len(added), len(took)
	if slices.Sort(took); len(took) > 0 {
		row.P50, row.Max = took[len(took)/2], took[len(took)-1]
	}
	if _, row.PeakRSS, err = testbed.Memory(pid); err != nil {
		return Waited{}, err
	}
	return row, nil
}

func (r WaitingReport) Write(w io.Writer, format string) error {
	if format == "json" {
		return report.WriteJSON(w, r)
	}
	fmt.Fprintf(w, "%d nodes, %d bound pods, %d pods that fit nowhere\n\n", r.Nodes, r.Pods, r.Waiting)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "SCHEDULER\tCHANGE\tCHANGES/s\tCPU\tBIND P50\tBIND MAX\tBOUND\tPATCHES\tPEAK RSS\tOTHERS\t")
	for _, row := range r.Waited {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.0f%%\t%.3fs\t%.3fs\t%d/%d\t%d\t%.0fMi\t%.0f%%\t\n", row.Scheduler, row.Change,
			row.Rate, 100*row.CPU, row.P50, row.Max,
			row.Bound, row.Probes, row.Patches, report.Mebi(row.PeakRSS), 100*row.Others)
	}
	return t.Flush()
}
