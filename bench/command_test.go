// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestMain makes the test's own program stand for kumiki: the benchmark starts it with kumiki's command lines.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "scheduler" || os.Args[1] == "bench") {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		root := &cobra.Command{Use: "kumiki"}
		root.AddCommand(NewCommand(), schedulerForTest())
		if err := root.ExecuteContext(ctx); err != nil {
			os.Exit(1)
		}
		return
	}
	runTests(m)
}

// runTests runs the tests and ends the process.
var runTests = func(m *testing.M) { os.Exit(m.Run()) }

// schedulerForTest is `kumiki scheduler` with the flags that the benchmark gives.
func schedulerForTest() *cobra.Command {
	o := app.DefaultOptions()
	var file string
	cmd := &cobra.Command{Use: "scheduler", RunE: func(cmd *cobra.Command, _ []string) (err error) {
		if o.Config, err = config.Read(file); err != nil {
			return err
		}
		return app.Run(cmd.Context(), o)
	}}
	cmd.Flags().StringVar(&file, "config", "", "")
	o.Serve.Secure.AddFlags(cmd.Flags())
	o.Serve.Authentication.AddFlags(cmd.Flags())
	o.Serve.Authorization.AddFlags(cmd.Flags())
	return cmd
}

// One small run of each scheduler that needs no other build, on real clusters: the reported figures must be
// consistent.
func TestSmallRun(t *testing.T) {
	testcluster.Reserve(t)
	before := goleak.IgnoreCurrent()
	const pods = 50
	plan, err := basicPlan(10, pods)
	if err != nil {
		t.Fatal(err)
	}
	profiles := t.TempDir()
	m := &matrix{plans: []workload.Plan{plan}, tell: newTeller(io.Discard), Options: testbed.Options{
		Rounds: 1, Schedulers: []string{report.Kumiki, report.Null, report.CreateOnly}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst, Timeout: 3 * time.Minute,
		ProfileDir: profiles, ProfileSeconds: 1,
	}}
	c, err := m.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verdict(); err != nil {
		t.Fatal(err, c.Failures(plan.Name))
	}
	for i := range c.Trials {
		run := &c.Trials[i]
		if run.Pods != pods || run.Calls["POST pods 201"] != pods {
			t.Errorf("%s: %d pods, calls %v, want %d", run.Scheduler, run.Pods, run.Calls, pods)
		}
		if run.Scheduler == report.CreateOnly {
			if run.Bound != 0 || run.PeakRSS != 0 || len(run.Items) != 1 {
				t.Errorf("without a scheduler, %d pods are bound, the peak is %d bytes, and the items are %v", run.Bound, run.PeakRSS, run.Items)
			}
			continue
		}
		if run.Events != pods || run.Bound != pods || run.Calls["POST pods/binding 201"] != pods || run.Calls["POST events 201"] != pods {
			t.Errorf("%s: %d events and calls %v, want %d binds and as many events", run.Scheduler, run.Events, run.Calls, pods)
		}
		if l := run.Latency; l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.Max || l.Max > run.BindSeconds || run.BindSeconds > run.SettleSeconds {
			t.Errorf("%s: the times do not grow: %+v", run.Scheduler, run)
		}
		if run.PeakRSS < run.SteadyRSS || run.SteadyRSS == 0 {
			t.Errorf("%s: memory is %d at the end and %d at most", run.Scheduler, run.SteadyRSS, run.PeakRSS)
		}
		if item := report.FindItem(run.Items, workload.Throughput, map[string]string{"Name": "basic/10Nodes_50Pods/namespace-2"}); item == nil || item.Data["Average"] <= 0 {
			t.Errorf("%s: a run of less than two seconds has no throughput among %v", run.Scheduler, run.Items)
		}
		if n := len(run.Spectrum); n < 5 || run.Spectrum[n-1].Seconds != run.Latency.Max {
			t.Errorf("%s: the distribution of latencies is %v", run.Scheduler, run.Spectrum)
		}
	}
	if r := c.Row(plan.Name, report.Kumiki); r.OfNull == nil || r.OfNull.Estimate <= 0 {
		t.Errorf("the ratio to null is %+v", r.OfNull)
	}
	for _, name := range []string{report.Kumiki + ".pprof", report.Kumiki + ".allocs.pprof"} {
		if info, err := os.Stat(filepath.Join(profiles, name)); err != nil || info.Size() == 0 {
			t.Errorf("profile %s: %v", name, err)
		}
	}
	// The thread that starts clusters lives as long as the program.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("github.com/kumiki-scheduler/kumiki/internal/testcluster.init.func1.1"))
}

func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no nodes":          {[]string{"--nodes=0"}, "nodes and pods must be at least 1, not 0 and 10000"},
		"unknown scheduler": {[]string{"--scheduler=kumiki,slurm"}, `scheduler "slurm" is unknown`},
		"named twice":       {[]string{"--scheduler=null,null"}, "scheduler null is named twice"},
		"no scheduler":      {[]string{"--scheduler="}, "no scheduler to measure"},
		"unknown output":    {[]string{"-o=xml"}, `output "xml" is unknown`},
		"no time":           {[]string{"--timeout=0s"}, "timeout 0s: it must be above 0"},
		"no patience":       {[]string{"--patience=-1s"}, "patience -1s"},
		"no calls":          {[]string{"--qps=-1"}, "qps and burst must be above 0"},
		"no runs":           {[]string{"--runs=0"}, "runs must be at least 1, not 0"},
		"no such program":   {[]string{"--scheduler=kumiki,./none"}, `scheduler "./none": `},
		"two profiles":      {[]string{"--profile-dir=" + t.TempDir(), "--profile=" + t.TempDir()}, "give one of them"},
		"no seconds":        {[]string{"--profile-dir=" + t.TempDir(), "--profile-seconds=0"}, "profile-seconds must be at least 1"},
		"upstream missing":  {[]string{"--kube-scheduler=" + filepath.Join(t.TempDir(), "none")}, "make conformance-upstream"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(append([]string{"basic"}, c.args...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.want)
		}
	}
}

func TestSchedulerThatDiesIsReported(t *testing.T) {
	dir := t.TempDir()
	s, err := testbed.Start(t.Context(), testbed.Options{KumikiBinary: os.Args[0]}, report.Null, filepath.Join(dir, "no-kubeconfig"), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.WaitReady(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended before it was ready") || !strings.Contains(err.Error(), "no-kubeconfig") {
		t.Errorf("got %v, want the program's own words", err)
	}
}

func TestHelpHidesTheNullBinder(t *testing.T) {
	var out bytes.Buffer
	cmd := NewCommand()
	cmd.SetArgs([]string{"--help"})
	cmd.SetOut(&out)
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "basic") || strings.Contains(out.String(), "looking at nothing") {
		t.Errorf("help says:\n%s", out.String())
	}
}
