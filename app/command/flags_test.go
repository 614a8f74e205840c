// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
)

// upstreamFlag is a flag in testdata/flags.json, which conformance/flags makes out of upstream's command.
type upstreamFlag struct {
	Section, Name, Shorthand, Type, Default, Bare, Deprecated string
	Hidden                                                    bool
}

func upstreamFlags(t *testing.T) []upstreamFlag {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "flags.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []upstreamFlag
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// otherDefaults are the flags whose defaults differ on purpose: flag -> our default.
var otherDefaults = map[string]string{
	"kube-api-qps":   "0", // no limit but requests in flight: docs/compatibility.md
	"kube-api-burst": "0",
}

// ownFlags are those that kube-scheduler does not have.
var ownFlags = []string{"incident-dir", "incident-dir-max-bytes", "record", "record-max-bytes", "record-segments", "shadow", "shadow-for", "shadow-report"}

// TestFlagsAreThoseOfUpstream: every flag of kube-scheduler has its name, type, default, shorthand and section here.
func TestFlagsAreThoseOfUpstream(t *testing.T) {
	for _, line := range [][]string{{"kube-scheduler"}, {"kumiki", "scheduler"}} {
		root := commandFor(line[0], streams{}, app.Plugins{})
		c, _, err := root.Find(line[1:])
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{} // flag -> upstream has it
		for _, u := range upstreamFlags(t) {
			want[u.Name] = true
			if d, other := otherDefaults[u.Name]; other {
				u.Default = d
			}
			f := c.Flags().Lookup(u.Name)
			if f == nil {
				t.Errorf("%v: no flag --%s", line, u.Name)
				continue
			}
			got := upstreamFlag{u.Section, f.Name, f.Shorthand, f.Value.Type(), f.DefValue, f.NoOptDefVal,
				f.Deprecated, f.Hidden}
			if got != u {
				t.Errorf("%v: upstream's flag is %+v, ours %+v", line, u, got)
			}
		}
		var own []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !want[f.Name] {
				own = append(own, f.Name)
			}
		})
		if !slices.Equal(own, ownFlags) {
			t.Errorf("%v: flags that upstream does not have: %v", line, own)
		}
	}
	f := newSchedulerFlags("test")
	for _, u := range upstreamFlags(t) {
		if f.sets.FlagSets[u.Section].Lookup(u.Name) == nil {
			t.Errorf("--%s is not in the section %q of --help", u.Name, u.Section)
		}
	}
}

// values: type of a flag -> a value that such a flag takes.
var values = map[string]string{
	"bool": "true", "string": "words", "stringSlice": "a,b", "int": "3", "int32": "3", "int32Slice": "29,23",
	"float32": "1.5", "duration": "7s", "ip": "127.0.0.1",
	"namedCertKey": "a.crt,a.key:example.com", "stringToString": "m,l=v",
	"colonSeparatedMultimapStringString": "kube:PodLevelResources=true",
	"quantity":                           "1Ki", "Level": "3", "pattern=N,...": "loop=2", "version": "raw",
}

// TestEveryFlagIsAccepted sets each flag of upstream's, with hyphens and with underscores.
func TestEveryFlagIsAccepted(t *testing.T) {
	for _, u := range upstreamFlags(t) {
		if u.Name == "help" {
			continue
		}
		for _, name := range []string{u.Name, strings.ReplaceAll(u.Name, "-", "_")} {
			c := newSchedulerCommand(streams{}, kubeScheduler, app.Plugins{})
			if err := c.ParseFlags([]string{"--" + name + "=" + values[u.Type]}); err != nil ||
				!c.Flags().Changed(u.Name) {
				t.Errorf("--%s=%s: %v", name, values[u.Type], err)
			}
		}
	}
}

// parsed are the flags of a command line, which must have none but flags.
func parsed(t *testing.T, line string) *schedulerFlags {
	t.Helper()
	f := newSchedulerFlags("test")
	all := pflag.NewFlagSet("test", pflag.ContinueOnError)
	for _, set := range f.sets.FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(strings.Fields(line)); err != nil {
		t.Fatal(err)
	}
	if err := f.gates.Resolve(); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFlagsOverFile: leader election flags win over the file, deprecated ones lose, as in upstream.
func TestFlagsOverFile(t *testing.T) {
	path := file(t, head+"leaderElection: {leaderElect: false, resourceName: mine}\nclientConnection: {qps: 7}\n")
	for _, tt := range []struct {
		line  string
		check func(config.Resolved) bool
	}{
		{"", func(c config.Resolved) bool {
			return c.LeaderElection.Enabled && c.ClientConnection.QPS == 0 && c.Profiling
		}},
		{"--kube-api-qps=9 --profiling=false", func(c config.Resolved) bool {
			return c.ClientConnection.QPS == 9 && !c.Profiling && !c.ContentionProfiling
		}},
		{"--leader-elect=false", func(c config.Resolved) bool { return !c.LeaderElection.Enabled }},
		{"--config=" + path, func(c config.Resolved) bool {
			return !c.LeaderElection.Enabled && c.LeaderElection.Name == "mine" && c.ClientConnection.QPS == 7
		}},
		{"--config=" + path + " --kube-api-qps=9 --leader-elect --leader-elect-retry-period=1s",
			func(c config.Resolved) bool {
				return c.LeaderElection.Enabled && c.LeaderElection.Name == "mine" && c.ClientConnection.QPS == 7 &&
					c.LeaderElection.RetryPeriod == time.Second
			}},
		{"--config=" + path + " --kubeconfig=/k",
			func(c config.Resolved) bool { return c.ClientConnection.Kubeconfig == "/k" }},
	} {
		got, err := parsed(t, tt.line).configuration()
		if err != nil || !tt.check(got) {
			t.Errorf("%q: %+v, %v", tt.line, got, err)
		}
	}
}

// TestUnschedulableTimeout: --pod-max-in-unschedulable-pods-duration counts with a file as without.
func TestUnschedulableTimeout(t *testing.T) {
	path := file(t, head)
	for line, want := range map[string]time.Duration{
		"": 5 * time.Minute, "--pod-max-in-unschedulable-pods-duration=90s": 90 * time.Second,
		"--pod-max-in-unschedulable-pods-duration=1h --config=" + path: time.Hour,
	} {
		if got := parsed(t, line).app.UnschedulableTimeout; got != want {
			t.Errorf("%q: %s", line, got)
		}
	}
}

// TestWarnings: one line about deprecated flags, one about flags that --config makes count for nothing, one about
// gates.
func TestWarnings(t *testing.T) {
	plain, named := file(t, head), file(t, head+"clientConnection: {kubeconfig: /in-file}\n")
	for _, tt := range []struct {
		line string
		want []string // starts of lines
	}{
		{"--leader-elect --bind-address=127.0.0.1", nil},
		{"--kubeconfig=/k --kube-api-qps=5",
			[]string{"deprecated flags: --kubeconfig (in the file of --config: clientConnection.kubeconfig), " +
				"--kube-api-qps ("}},
		{"--profiling=false --contention-profiling --kube-api-content-type=a --kube-api-burst=3",
			[]string{"deprecated flags: --profiling ("}},
		{"--pod-max-in-unschedulable-pods-duration=1m --config=" + plain,
			[]string{"deprecated flags: --pod-max-in-unschedulable-pods-duration"}},
		{"--kubeconfig=/k --kube-api-qps=5 --config=" + plain, []string{"deprecated flags: --kubeconfig",
			"flags that count for nothing because --config is given: --kube-api-qps"}},
		{"--kubeconfig=/k --config=" + named,
			[]string{"flags that count for nothing because --config is given: --kubeconfig"}},
		{"--kubeconfig=/in-file --config=" + named, []string{"deprecated flags: --kubeconfig"}},
		{"--feature-gates=OpportunisticBatching=true,PodLevelResources=true," +
			"DRADeviceTaints=false,DRADeviceTaintRules=false",
			[]string{"these feature gates change nothing here (docs/compatibility.md says how kumiki behaves): " +
				"OpportunisticBatching=true"}},
	} {
		f := parsed(t, tt.line)
		c, err := f.configuration()
		if err != nil {
			t.Fatal(err)
		}
		got := f.warnings(c)
		if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.line, got, tt.want)
		}
	}
}

// TestEveryDeprecatedFlagIsNamed: the section that upstream calls deprecated is what the warning knows.
func TestEveryDeprecatedFlagIsNamed(t *testing.T) {
	var want, got []string
	for _, u := range upstreamFlags(t) {
		if u.Section == "deprecated" || u.Deprecated != "" {
			want = append(want, u.Name)
		}
	}
	for _, d := range deprecated {
		got = append(got, d.flag)
		usage := newSchedulerFlags("test").sets.FlagSet("deprecated").Lookup(d.flag).Usage
		if !strings.HasPrefix(usage, "DEPRECATED: ") {
			t.Errorf("--help says of --%s: %s", d.flag, usage)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("warned of: %v; deprecated: %v", got, want)
	}
}

// TestWriteConfig: the output of --write-config-to can be read, and has the same effective configuration.
func TestWriteConfig(t *testing.T) {
	in := file(t, head+"parallelism: 3\nprofiles: [{schedulerName: mine, pluginConfig: [{name: Kumiki, args: "+
		"{seed: 9}}]}]\n")
	for _, tt := range []struct {
		line  []string
		check func(config.Resolved) bool
	}{
		{[]string{"--leader-elect=false"}, func(c config.Resolved) bool { return !c.LeaderElection.Enabled }},
		{[]string{"--kube-api-qps=5", "--kube-api-burst=6", "--kubeconfig=/k"}, func(c config.Resolved) bool {
			return c.ClientConnection.QPS == 5 && c.ClientConnection.Burst == 6 && c.ClientConnection.Kubeconfig == "/k"
		}},
		{[]string{"--config=" + in}, func(c config.Resolved) bool {
			return c.Parallelism == 3 && c.Profiles[0].SchedulerName == "mine" && c.Kumiki.Seed == 9
		}},
	} {
		path := filepath.Join(t.TempDir(), "out.yaml")
		if code, _, errs := command(t, append([]string{"kube-scheduler", "--write-config-to", path},
			tt.line...)...); code != 0 {
			t.Errorf("%v: code %d: %s", tt.line, code, errs)
			continue
		}
		if c, err := config.Read(path); err != nil || !tt.check(c) {
			t.Errorf("%v: read back: %+v, %v", tt.line, c, err)
		}
	}
	if code, _, errs := command(t, "kube-scheduler", "--write-config-to=/does/not/exist/file"); code != 1 ||
		!strings.Contains(errs, "writing the configuration") {
		t.Errorf("a file that cannot be written: code %d: %s", code, errs)
	}
}

// TestHelp: the sections of upstream's help, in its order, and ours.
func TestHelp(t *testing.T) {
	code, out, errs := command(t, "kube-scheduler", "--help")
	if code != 0 || errs != "" {
		t.Fatalf("code %d: %s", code, errs)
	}
	at := 0
	for _, section := range []string{"Misc flags:", "Kumiki flags:", "Secure serving flags:", "Authentication flags:",
		"Authorization flags:", "Deprecated flags:",
		"Leader election flags:", "Feature gate flags:", "Metrics flags:", "Logs flags:", "Global flags:"} {
		next := strings.Index(out[at:], section)
		if next < 0 {
			t.Fatalf("no section %q after the one before it:\n%s", section, out)
		}
		at += next
	}
	for _, part := range []string{"kube:GenericWorkload=true|false (BETA - default=false)",
		"kube=1.34..1.37(default:1.37)", "help for kube-scheduler", "--version version[=true]"} {
		if !strings.Contains(out, part) {
			t.Errorf("the help does not say %q", part)
		}
	}
}

// TestLocalPlannersAreNotRecorded: a recording or a bundle would lack what planners are told, so both are refused.
// Fault: a recording that cannot be replayed, which is noticed when it is needed.
func TestLocalPlannersAreNotRecorded(t *testing.T) {
	config := file(t, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig: [{name: Kumiki, args: {instances: {mode: Shared, local: 2}}}]
`)
	for _, flag := range []string{"--record=" + filepath.Join(t.TempDir(), "f"), "--incident-dir=" + t.TempDir()} {
		code, out, errs := command(t, "kumiki", "scheduler", "--secure-port=0", "--config="+config, flag)
		if code != 2 || out != "" || !strings.Contains(errs, "cannot be used with instances: mode Shared") {
			t.Errorf("%s: code %d, stdout %q, stderr %s", flag, code, out, errs)
		}
	}
}
