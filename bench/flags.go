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

// addFlags adds the flags of all commands that run workloads.
func addFlags(fs *pflag.FlagSet, o *testbed.Options, runs int, schedulers []string, timeout time.Duration) {
	usage.Schedulers(fs, &o.Schedulers, schedulers, "measure these schedulers, in this order")
	fs.IntVar(&o.Rounds, "runs", runs, "number of runs of each scheduler")
	fs.Float32Var(&o.QPS, "qps", testbed.DefaultQPS, "maximum requests per second of each client of each scheduler")
	fs.IntVar(&o.Burst, "burst", testbed.DefaultBurst, "maximum burst of requests of each client of each scheduler")
	fs.DurationVar(&o.Timeout, "timeout", timeout, "abort a run after this time")
	fs.DurationVar(&o.Patience, "patience", testbed.DefaultPatience,
		"abort a run if none of the awaited pods makes progress for this time")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "path of the kumiki `program` (default: this program)")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "",
		"path of the kube-scheduler `program` (default: kube-scheduler in the directory of this program)")
	fs.StringVar(&o.Bundles, "profile", "",
		"keep a profile of each run in this `directory`, for 'kumiki profile top' and 'compare': execution trace, CPU "+
			"and allocations of the measurement (of its first minute), and when each pod was created and bound; "+
			"recording slows the schedulers down")
	fs.StringVar(&o.ProfileDir, "profile-dir", "",
		"write CPU and allocation profiles of the last run of each scheduler to this `directory`; profiling "+
			"slows the schedulers down")
	fs.IntVar(&o.ProfileSeconds, "profile-seconds", 15, "length of the CPU profile, in seconds")
}

func addFormat(fs *pflag.FlagSet, format *string) {
	fs.StringVarP(format, "output", "o", "table", "output format: "+strings.Join(report.Formats, ", "))
}

func knownFormat(format string) error {
	if !slices.Contains(report.Formats, format) {
		return usage.Errorf("output %q is unknown; there are %s", format, strings.Join(report.Formats, ", "))
	}
	return nil
}
