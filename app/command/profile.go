// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/outside"
	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/bench"
)

func newProfileCommand(io streams, plugins app.Plugins) *cobra.Command {
	c := &cobra.Command{
		Use:   "profile",
		Short: "Find what takes the CPU of a scheduler, and what it waits for",
		Long: `Record a profile of a running scheduler, kumiki or an unmodified kube-scheduler, and show which lanes,
functions and plugins use the CPU, inside the scheduling loop and outside of it, and what they wait for.`,
		Example: `  kumiki profile record -f slow.kumiki
  kumiki profile why slow.kumiki
  kumiki profile top slow.kumiki`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newProfileRecordCommand(io), newProfileTopCommand(io, plugins), newProfileWhyCommand(io),
		newProfilePodCommand(io), newProfileSequenceCommand(io), newProfileCompareCommand(io), bench.NewSweepCommand(),
		newProfileRegretCommand(io, plugins), newProfileExportCommand(io))
	return c
}

func newProfileRecordCommand(io streams) *cobra.Command {
	var find finder
	o := recordOptions{seconds: 10, pods: true}
	var file string
	c := &cobra.Command{
		Use:   "record",
		Short: "Record a profile of the running scheduler into a file",
		Long: `Record an execution trace, a CPU profile and an allocation profile of the running scheduler at the
same time, and its metrics before and after, into one file. The name of the file is printed. The scheduler
may be kumiki or kube-scheduler; it needs no restart and no flag. kumiki also reports the phases of pods and
its amounts of work, and meanwhile measures the CPU time of all Steps of its core. You need get on the
nonResourceURLs /debug/pprof/* and /metrics, and for kumiki on /debug/kumiki/* and /kumiki/*. If you may
list and watch pods, the file has the names of the pods that are created meanwhile, and when a watch
showed them bound. What is denied is missing in the file, with the reason.`,
		Example: `  kumiki profile record
  kumiki profile record --seconds 30 -f slow.kumiki
  kumiki profile record --scheduler-pod kube-system/kube-scheduler-node-1
  kumiki profile record --scheduler-endpoint 127.0.0.1:10259 --scheduler-insecure`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.seconds < 1 || o.seconds > outside.MaxSeconds {
				return usageError{fmt.Errorf("--seconds must be from 1 to %d, got %d", outside.MaxSeconds, o.seconds)}
			}
			if o.exact && o.seconds > outside.MaxExactSeconds {
				return usageError{fmt.Errorf("with --exact, --seconds must be at most %d, got %d",
					outside.MaxExactSeconds, o.seconds)}
			}
			if file == "" {
				file = "kumiki-profile-" + time.Now().UTC().Format("20060102T150405Z") + ".kumiki"
			}
			if err := recordProfile(c.Context(), io, &find, file, o); err != nil {
				return err
			}
			_, err := fmt.Fprintln(io.Out, file)
			return err
		},
	}
	find.addAnyFlags(c)
	c.Flags().IntVar(&o.seconds, "seconds", o.seconds, "duration of the recording")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write (default: kumiki-profile-TIME.kumiki)")
	c.Flags().BoolVar(&o.exact, "exact", false, fmt.Sprintf("measure the CPU time of plugins by the clock of the "+
		"thread at each boundary between them, which slows the scheduler, for at most %d seconds (kumiki alone)",
		outside.MaxExactSeconds))
	c.Flags().BoolVar(&o.decisions, "decisions", false, "record the events behind the decisions, with "+
		"the names and requests of all pods and nodes, for the placement regret in top (kumiki alone)")
	c.Flags().BoolVar(&o.pods, "pods", o.pods, "record the names of pods, and when they were created and bound")
	c.Flags().StringVar(&o.audit, "audit-log", "", auditHelp)
	return c
}

// recordOptions are what a recording has.
type recordOptions struct {
	seconds int
	// pods: record when pods are created and bound.
	pods bool
	// decisions: record what the flight recorder keeps.
	decisions bool
	// exact: measure the CPU time of plugins at the boundaries between them.
	exact bool
	// audit is the file of an audit log; empty for none.
	audit string
}

// recordProfile records the first of the running schedulers.
func recordProfile(ctx context.Context, io streams, find *finder, name string, o recordOptions) error {
	running, err := find.schedulers(ctx, "")
	if err != nil {
		return err
	}
	if len(running) > 1 {
		fmt.Fprintf(io.Err, "%d schedulers run; this is the profile of %s (choose one with --scheduler-lease)\n",
			len(running), running[0])
	}
	client, err := running[0].Connect(ctx)
	if err != nil {
		return fmt.Errorf("%w; if you can reach the scheduler's port, name it with --scheduler-endpoint", err)
	}
	defer client.Close()
	return writeFile(name, func(file *os.File) error {
		w := bundle.NewWriter(file)
		w.Manifest.Tool, w.Manifest.Scheduler = "kumiki "+version, running[0].String()
		to := outside.Options{Seconds: o.seconds, Exact: o.exact, API: find.apiServer(),
			Progress: func(line string) { fmt.Fprintln(io.Err, line) }}
		var also []func(*bundle.Writer) error
		if o.decisions { // first, so that its end is that of the recording
			also = append(also, func(w *bundle.Writer) error { return addDecisions(ctx, client, w) })
		}
		also = append(also, func(w *bundle.Writer) error { return addTiming(ctx, client, w, o.audit) })
		if o.pods {
			cfg, err := find.rest()
			if err != nil {
				return err
			}
			watch := watchPods(ctx, cfg)
			defer watch.stop()
			also = append(also, watch.addTo)
			if err := watch.denied(); err != nil {
				to.Progress(fmt.Sprintf("no %s: %v", bundle.Pods, err))
			}
		}
		to.Also = func(w *bundle.Writer) error {
			for _, add := range also {
				if err := add(w); err != nil {
					return err
				}
			}
			return nil
		}
		return outside.Record(ctx, client, w, to)
	})
}

// writeFile writes a file that appears with its whole content or not at all.
func writeFile(name string, write func(*os.File) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return fmt.Errorf("creating %s: %w", name, err)
	}
	err = write(file)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		os.Remove(file.Name())
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// orders are the values of --sort.
var orders = []string{string(apm.ByCPU), string(apm.ByCumulative), string(apm.ByWait)}

func newProfileTopCommand(io streams, plugins app.Plugins) *cobra.Command {
	var out output
	order, limit := string(apm.ByCPU), 25
	c := &cobra.Command{
		Use:   "top FILE",
		Short: "Show what uses the CPU in a profile, and what waits",
		Long: `Show the lanes, functions and plugins of a recorded profile: own and cumulative CPU time, time in
which they were ready to run and did not, and time in which they waited, by component. The lanes and a
residual add up to the CPU time of the process. Of kumiki also: amounts of work, the exact CPU time of
Steps and plugins, work without a result, and by how much chosen nodes score below the best ones if the
file has the decisions (record --decisions, or the bundle of an incident). A dash is a value that cannot be
observed; the reason is below the tables.`,
		Example: `  kumiki profile top slow.kumiki
  kumiki profile top slow.kumiki --sort cum --limit 50
  kumiki profile top slow.kumiki -o json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if !slices.Contains(orders, order) {
				return usageError{fmt.Errorf("--sort must be one of %s, got %q", strings.Join(orders, ", "), order)}
			}
			if limit < 0 {
				return usageError{errors.New("--limit must not be negative")}
			}
			p, err := readProfile(a[0])
			if err != nil {
				return err
			}
			setRegret(p, a[0], plugins)
			for _, rows := range [][]apm.Row{p.Functions, p.Goroutines, p.Plugins} {
				apm.Sort(rows, apm.Order(order))
			}
			return out.print(io.Out, p, func(wide bool) error { return text.Profile(io.Out, p, limit, wide) })
		},
	}
	out.addFlag(c)
	c.Flags().StringVar(&order, "sort", order, "order of functions: "+strings.Join(orders, ", "))
	c.Flags().IntVar(&limit, "limit", limit, "number of functions in the table; 0 shows all")
	c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp))
	c.ValidArgsFunction = completeBundle
	return c
}

// completeBundle completes the file of a profile.
func completeBundle(_ *cobra.Command, a []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(a) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"kumiki"}, cobra.ShellCompDirectiveFilterFileExt
}

func readProfile(name string) (*apm.Profile, error) {
	b, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	p, err := apm.Analyze(b)
	if err != nil {
		return nil, fmt.Errorf("analyzing %s: %w", name, err)
	}
	return p, nil
}
