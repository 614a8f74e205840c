// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/standin"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// namespace has all pods.
const namespace = "bench"

// load is what the stand-in does.
type load struct {
	nodes, pods int
	// rate is pods created per second; 0 creates all at once.
	rate float64
	// patience ends a run in which no pod is bound for this time.
	patience   time.Duration
	dir        string // gets the kubeconfig
	cpuProfile string // file; empty for none
}

// The commands, a line each, that the stand-in reads. It answers each with a line of JSON.
const (
	// cmdCreate creates the pods and answers when all are bound and their events are written.
	cmdCreate = "create"
	// cmdReport answers with what was measured: a command of its own, so that its cost is not measured.
	cmdReport = "report"
)

// hello is the first line of the stand-in.
type hello struct {
	Kubeconfig string `json:"kubeconfig"`
	// PodBytes is the size of a pod in protobuf.
	PodBytes int `json:"podBytes"`
}

// done answers cmdCreate.
type done struct {
	// Seconds is the time from the first create until the last bind and event.
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

// served answers cmdReport.
type served struct {
	Binds int `json:"binds"`
	// CreateSeconds is the time in which all pods were created, BindSeconds until the last was bound, EventSeconds
	// until the last event was written; all from the first create.
	CreateSeconds float64 `json:"createSeconds"`
	BindSeconds   float64 `json:"bindSeconds"`
	EventSeconds  float64 `json:"eventSeconds"`
	// P50 and P99 are seconds from a pod's create to its bind.
	P50 report.Seconds `json:"p50Seconds"`
	P99 report.Seconds `json:"p99Seconds"`
	// Events are the new events by reason, Patches the requested changes of pod statuses.
	Events  map[string]int `json:"events"`
	Patches int            `json:"patches"`
	// Problems are what a scheduler may not leave behind; see standin.Server.Problems.
	Problems []string `json:"problems,omitempty"`
}

func newServerCommand() *cobra.Command {
	var l load
	cmd := &cobra.Command{
		Use:    "wire-server",
		Short:  "Play the API server of bench wire, led by standard input",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), l, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&l.nodes, "nodes", 1, "number of nodes")
	fs.IntVar(&l.pods, "pods", 1, "number of pods")
	fs.Float64Var(&l.rate, "rate", 0, "pods created per second; 0 creates all at once")
	fs.DurationVar(&l.patience, "patience", testbed.DefaultPatience, "give up when no pod is bound for this time")
	fs.StringVar(&l.dir, "dir", ".", "write the kubeconfig into this `directory`")
	fs.StringVar(&l.cpuProfile, "cpuprofile", "", "write a CPU profile of the measured time to this `file`")
	return cmd
}

// serve plays the API server until in ends.
func serve(ctx context.Context, l load, in io.Reader, out io.Writer) (err error) {
	s, err := standin.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.AddNamespace(namespace)
	for i := range l.nodes {
		s.AddNode(standin.Node(i))
	}
	pods := make([]*corev1.Pod, l.pods)
	for i := range pods {
		pods[i] = standin.ServicePod(namespace, fmt.Sprintf("pod-%06d", i), "", i)
		standin.AsStored(pods[i])
	}
	greeting := hello{PodBytes: pods[0].Size()}
	if greeting.Kubeconfig, err = s.WriteKubeconfig(l.dir); err != nil {
		return err
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(greeting); err != nil {
		return err
	}
	c := measurement{Server: s, load: l, pods: pods}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		switch lines.Text() {
		case cmdCreate:
			d := done{}
			if err := c.run(ctx); err != nil {
				d.Error = err.Error()
			}
			d.Seconds = time.Since(c.began).Seconds()
			err = answers.Encode(d)
		case cmdReport:
			err = answers.Encode(c.report())
		default:
			err = fmt.Errorf("command %q is unknown", lines.Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measurement is the load of one trial, and what came of it.
type measurement struct {
	*standin.Server
	load    load
	pods    []*corev1.Pod
	began   time.Time
	created time.Time // when all were
}

// run creates the pods and waits until nothing more comes.
func (c *measurement) run(ctx context.Context) error {
	if c.load.cpuProfile != "" {
		f, err := os.Create(c.load.cpuProfile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	runtime.GC() // what was made before the measurement is not collected in it
	c.began = time.Now()
	if err := c.create(ctx); err != nil {
		return err
	}
	c.created = time.Now()
	return c.settle(ctx)
}

const (
	// beat is how often pods are created at a rate, and how often the measurement is looked at.
	beat = 2 * time.Millisecond
	// together is how many pods are created before others get the processor: watches and binds.
	together = 50
	// quiet is how long no event comes before those that are missing are given up.
	quiet = time.Second
)

func (c *measurement) create(ctx context.Context) error {
	for i := 0; i < len(c.pods); {
		due := len(c.pods)
		if c.load.rate > 0 {
			due = min(due, int(time.Since(c.began).Seconds()*c.load.rate)+1)
		}
		for ; i < due; i++ {
			c.AddPod(c.pods[i])
			if i%together == 0 {
				runtime.Gosched()
			}
		}
		if i == len(c.pods) {
			break
		}
		if err := testbed.Pause(ctx, beat); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until all pods are bound and all their events are written, or until no more come.
func (c *measurement) settle(ctx context.Context) error {
	binds, last := 0, time.Now()
	for {
		n := c.Counts()
		events := total(n.Events)
		switch {
		case n.Binds == len(c.pods) && events >= n.Binds:
			return nil
		case n.Binds+events != binds:
			binds, last = n.Binds+events, time.Now()
		case n.Binds == len(c.pods) && time.Since(last) > quiet:
			return nil
		case time.Since(last) > c.load.patience:
			return fmt.Errorf("%d of %d pods were bound, and none for %s", n.Binds, len(c.pods), c.load.patience)
		}
		if err := testbed.Pause(ctx, 5*beat); err != nil {
			return err
		}
	}
}

func total(events map[string]int) int {
	n := 0
	for _, of := range events { // order: a sum
		n += of
	}
	return n
}

// report is what was measured.
func (c *measurement) report() served {
	n := c.Counts()
	r := served{Binds: n.Binds, Events: n.Events, Patches: n.Patches, Problems: c.Problems(),
		CreateSeconds: c.created.Sub(c.began).Seconds()}
	if !n.LastEvent.IsZero() {
		r.EventSeconds = n.LastEvent.Sub(c.began).Seconds()
	}
	var took []float64
	for _, b := range c.Log() {
		took = append(took, b.Bound.Sub(b.Added).Seconds())
		r.BindSeconds = b.Bound.Sub(c.began).Seconds() // the last stays: the log is in order
	}
	slices.Sort(took)
	r.P50, r.P99 = report.Seconds(report.NearestRank(took, 0.5)), report.Seconds(report.NearestRank(took, 0.99))
	return r
}
