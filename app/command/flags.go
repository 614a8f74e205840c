// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/gates"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
)

// schedulerFlags are kube-scheduler's flags and our own. testdata/flags.json lists kube-scheduler's.
type schedulerFlags struct {
	app     app.Options
	logs    *logsapi.LoggingConfiguration
	metrics *metrics.Options
	gates   *gates.Gates
	version reported
	sets    cliflag.NamedFlagSets

	configFile, writeConfigTo string
	leader                    config.LeaderElection
	resourceLock              string

	// The flags that upstream calls deprecated; they count only without --config.
	profiling, contentionProfiling bool
	kubeconfig, contentType        string
	qps                            float32
	burst                          int32

	record         string
	recordMax      int64
	recordSegments int
	incidentDir    string
	incidentMax    int64
	shadow         shadowFlags
}

// incidentFiles is how many bundles --incident-dir keeps.
const incidentFiles = 50

// newSchedulerFlags makes the flags of a command of the given name, in the sections and the order of upstream's help.
func newSchedulerFlags(command string) *schedulerFlags {
	f := &schedulerFlags{app: app.DefaultOptions(), logs: logsapi.NewLoggingConfiguration(),
		metrics: metrics.NewOptions(), gates: gates.New()}
	defaults := config.Default()
	f.leader = defaults.LeaderElection

	fs := f.sets.FlagSet("misc")
	fs.StringVar(&f.configFile, "config", "", "The path to the configuration file.")
	fs.StringVar(&f.writeConfigTo, "write-config-to", "",
		"If set, write the effective configuration to this file and exit.")
	fs.StringVar(&f.app.Master, "master", "",
		"The address of the Kubernetes API server (overrides any value in kubeconfig).")

	fs = f.sets.FlagSet("kumiki")
	fs.StringVar(&f.record, "record", "",
		"Write every event and effect to this file, for kumiki replay. It holds no environment values, secrets "+
			"or annotations.")
	fs.Int64Var(&f.recordMax, "record-max-bytes", tape.DefaultMaxBytes,
		"Size of a file of --record. With one segment, recording stops there; scheduling continues.")
	fs.IntVar(&f.recordSegments, "record-segments", 1,
		"Number of files of that size that --record keeps, the newest ones. With several, they are FILE.000001, "+
			"FILE.000002 and so on, and each can be replayed by itself.")
	fs.StringVar(&f.incidentDir, "incident-dir", "",
		fmt.Sprintf("Keep the bundles of incidents in this directory, which must exist, besides the two in memory: "+
			"up to %d files, the newest ones.", incidentFiles))
	fs.Int64Var(&f.incidentMax, "incident-dir-max-bytes", 1<<30,
		"Size of all bundles in --incident-dir; the oldest are removed.")
	f.shadow.addFlags(fs)

	f.app.Serve.Secure.AddFlags(f.sets.FlagSet("secure serving"))
	f.app.Serve.Authentication.AddFlags(f.sets.FlagSet("authentication"))
	f.app.Serve.Authorization.AddFlags(f.sets.FlagSet("authorization"))
	f.addDeprecated(f.sets.FlagSet("deprecated"))
	f.addLeaderElection(f.sets.FlagSet("leader election"))
	f.gates.AddFlags(f.sets.FlagSet("feature gate"))
	f.metrics.AddFlags(f.sets.FlagSet("metrics"))
	logsapi.AddFlags(f.logs, f.sets.FlagSet("logs"))
	fs = f.sets.FlagSet("global")
	fs.Var(&f.version, "version", "Print the version and exit; with raw, all of it. With vX.Y.Z-WORD, report this "+
		"version, which must be "+compatible+" up to the word.")
	fs.Lookup("version").NoOptDefVal = "true"
	fs.BoolP("help", "h", false, "help for "+command)
	return f
}

func (f *schedulerFlags) addDeprecated(fs *pflag.FlagSet) {
	fs.BoolVar(&f.profiling, "profiling", true,
		"DEPRECATED: profiling via web interface host:port/debug/pprof/. Ignored with --config.")
	fs.BoolVar(&f.contentionProfiling, "contention-profiling", true,
		"DEPRECATED: block profiling, if profiling is on. Ignored with --config.")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "",
		"DEPRECATED: path to a kubeconfig file. With --config it counts only if that file names none.")
	fs.StringVar(&f.contentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf",
		"DEPRECATED: content type of requests sent to the API server. Ignored with --config.")
	fs.Float32Var(&f.qps, "kube-api-qps", 0,
		"DEPRECATED: requests per second to the API server; 0 limits only the number of requests in flight. "+
			"Ignored with --config.")
	fs.Int32Var(&f.burst, "kube-api-burst", 0,
		"DEPRECATED: requests in a burst over --kube-api-qps. Ignored with --config.")
	fs.DurationVar(&f.app.UnschedulableTimeout, "pod-max-in-unschedulable-pods-duration", 5*time.Minute,
		"DEPRECATED: how long an unschedulable pod waits for an event before it is tried without one.")
}

func (f *schedulerFlags) addLeaderElection(fs *pflag.FlagSet) {
	l := &f.leader
	fs.BoolVar(&l.Enabled, "leader-elect", l.Enabled,
		"Gain the lease before scheduling. Enable this when several replicas run.")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration,
		"How long others wait after the last renewal they saw before they take the lease.")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline,
		"How long the leader tries to renew before it gives up. Must be less than the lease duration.")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod,
		"How long to wait between tries to gain or renew the lease.")
	fs.StringVar(&f.resourceLock, "leader-elect-resource-lock", "leases",
		"The kind of object used for locking; only 'leases'.")
	fs.StringVar(&l.Name, "leader-elect-resource-name", l.Name, "The name of the lease.")
	fs.StringVar(&l.Namespace, "leader-elect-resource-namespace", l.Namespace, "The namespace of the lease.")
}

func (f *schedulerFlags) changed(name string) bool {
	for _, set := range f.sets.FlagSets {
		if set.Changed(name) {
			return true
		}
	}
	return false
}

// deprecated flags, in the order in which they are named -> the field of the configuration file that takes their
// place, if there is one, and whether --config makes them count for nothing.
var deprecated = []struct {
	flag, field string
	ignored     bool
}{
	{"profiling", "enableProfiling", true},
	{"contention-profiling", "enableContentionProfiling", true},
	{"kubeconfig", "clientConnection.kubeconfig", false},
	{"kube-api-content-type", "clientConnection.contentType", true},
	{"kube-api-qps", "clientConnection.qps", true},
	{"kube-api-burst", "clientConnection.burst", true},
	{"pod-max-in-unschedulable-pods-duration", "", false},
}

// warnings tells what is accepted and may not be meant: deprecated flags, flags and gates that change nothing.
func (f *schedulerFlags) warnings(c config.Resolved) []string {
	var old, ignored, out []string
	for _, d := range deprecated {
		if !f.changed(d.flag) {
			continue
		}
		name := "--" + d.flag
		if f.configFile != "" && (d.ignored || d.flag == "kubeconfig" &&
			c.ClientConnection.Kubeconfig != f.kubeconfig) {
			ignored = append(ignored, name)
			continue
		}
		if d.field != "" {
			name += " (in the file of --config: " + d.field + ")"
		}
		old = append(old, name)
	}
	if len(old) > 0 {
		out = append(out, "deprecated flags: "+strings.Join(old, ", "))
	}
	if len(ignored) > 0 {
		out = append(out, fmt.Sprintf("flags that count for nothing because --config is given: %s",
			strings.Join(ignored, ", ")))
	}
	if idle := f.gates.Warning(); idle != "" {
		out = append(out, idle)
	}
	return append(out, c.Warnings...)
}
