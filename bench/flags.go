// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// addFlags are the flags of all commands that run workloads.
func addFlags(fs *pflag.FlagSet, o *testbed.Options, runs int, schedulers []string, timeout time.Duration) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "schedulers" { // its name in the first version
			name = "scheduler"
		}
		return pflag.NormalizedName(name)
	})
	fs.StringSliceVar(&o.Schedulers, "scheduler", schedulers, "what to measure, in this order")
	fs.IntVar(&o.Rounds, "runs", runs, "runs of each scheduler")
	fs.Float32Var(&o.QPS, "qps", testbed.DefaultQPS, "calls per second of each client of each scheduler")
	fs.IntVar(&o.Burst, "burst", testbed.DefaultBurst, "calls at once of each client of each scheduler")
	fs.DurationVar(&o.Timeout, "timeout", timeout, "give up a run after this time")
	fs.DurationVar(&o.Patience, "patience", testbed.DefaultPatience, "give up a run when none of the pods that are waited for has come further for this time")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "kumiki's `program`; empty: this one")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "", "upstream's `program`; empty: kube-scheduler beside this one")
	fs.StringVar(&o.ProfileDir, "profile-dir", "", "`directory` for CPU and allocation profiles of each scheduler, of its last run; profiling costs some of what it measures")
	fs.IntVar(&o.ProfileSeconds, "profile-seconds", 15, "length of the CPU profile")
}

func addFormat(fs *pflag.FlagSet, format *string) {
	fs.StringVarP(format, "output", "o", "table", strings.Join(report.Formats, ", "))
}

func knownFormat(format string) error {
	if !slices.Contains(report.Formats, format) {
		return usage.Errorf("output %q is unknown; there are %s", format, strings.Join(report.Formats, ", "))
	}
	return nil
}
