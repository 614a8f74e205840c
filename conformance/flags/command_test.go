// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/diff"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/component-base/cli"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/kumiki-scheduler/kumiki/app/command/gates"
	"github.com/kumiki-scheduler/kumiki/config"
)

// upstreamEnv makes this test binary upstream's kube-scheduler.
const upstreamEnv = "KUMIKI_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	if os.Getenv(upstreamEnv) != "" {
		os.Exit(cli.Run(app.NewSchedulerCommand()))
	}
	os.Exit(m.Run())
}

// side is one of the two commands.
type side struct {
	name, path string
	env        []string
}

// sides are upstream's command and ours, which is built.
func sides(t *testing.T) [2]side {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "kumiki")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", binary, "github.com/kumiki-scheduler/kumiki/cmd/kumiki")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building kumiki: %v\n%s", err, out)
	}
	return [2]side{{"upstream", os.Args[0], []string{upstreamEnv + "=1"}}, {"kumiki", binary, nil}}
}

// run runs a command line under the name kube-scheduler and gives what it said and its exit code.
func (s side) run(t *testing.T, line string) (said string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), s.path, strings.Fields(line)...)
	c.Args[0] = "kube-scheduler"
	c.Env = append(os.Environ(), append(s.env, "KUBECONFIG=")...)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", s.name, line, err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// unreachable writes a kubeconfig of an API server that does not exist.
func unreachable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBothRefuseTheSame: the exit code is the same, and what is wrong is said in the same words.
func TestBothRefuseTheSame(t *testing.T) {
	both := sides(t)
	kubeconfig := unreachable(t)
	for _, tt := range []struct{ line, words string }{
		{"--bogus", "unknown flag: --bogus"},
		{"-x", "unknown shorthand flag: 'x' in -x"},
		{"--leader-elect=maybe", `invalid argument "maybe" for "--leader-elect" flag: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"--leader_elect=maybe", `invalid argument "maybe" for "--leader-elect" flag`},
		{"--v=x", `invalid argument "x" for "-v, --v" flag`},
		{"--bind-address=nowhere", `invalid argument "nowhere" for "--bind-address" flag`},
		{"--pod-max-in-unschedulable-pods-duration=5", `invalid argument "5" for "--pod-max-in-unschedulable-pods-duration" flag`},
		{"extra", `"kube-scheduler" does not take any arguments, got ["extra"]`},
		{"--secure-port=-3", "--secure-port -3 must be between 0 and 65535, inclusive. 0 for turning off secure port"},
		{"--feature-gates=Nope=true", "unrecognized feature gate: Nope"},
		{"--feature-gates=GenericWorkload", "missing bool value for GenericWorkload"},
		{"--feature-gates=GenericWorkload=maybe", "invalid value of GenericWorkload=maybe"},
		{"--feature-gates=DRAAdminAccess=false", "cannot set feature gate DRAAdminAccess to false, feature is locked to true"},
		{"--feature-gates=GangScheduling=true", "unrecognized feature gate: GangScheduling"},
		{"--feature-gates=WorkloadAwarePreemption=true", "unrecognized feature gate: WorkloadAwarePreemption"},
		{"--feature-gates=SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"},
		{"--emulated-version=1.36 --feature-gates=SidecarContainers=true",
			"unrecognized feature gate: SidecarContainers"},
		{"--feature-gates=TopologyAwareWorkloadScheduling=true",
			"TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"--feature-gates=a:GenericWorkload=true", "component not registered: a"},
		{"--feature-gates=DRADeviceTaints=true,kube:AllBeta=false", "prefix consistently, do not mix use"},
		{"--emulated-version=1.30", "emulation version 1.30 is not between [1.34, 1.37"},
		{"--emulated-version=1.35.2", "patch version not allowed, got: kube=1.35.2"},
		{"--emulated-version=1.34 --feature-gates=GenericWorkload=true",
			"feature is PreAlpha at emulated version 1.34, min compatibility version 1.34"},
		{"--min-compatibility-version=1.30", "minCompatibilityVersion version 1.30 is not between [1.34, 1.37]"},
		{"--logging-format=xml", `format: Invalid value: "xml": Unsupported log format`},
		{"--vmodule=a=1 --logging-format=json", "vmodule: Forbidden: Only supported for text log format"},
		{"--vmodule=a", `invalid argument "a" for "--vmodule" flag: "a" does not have the pattern=N format`},
		{"--log-json-split-stream --logging-format=json", "Feature LoggingAlphaOptions is disabled"},
		{"--allow-metric-labels=a=b", "metrics.allowListMapping: Invalid value:"},
		{"--disabled-metrics=-", "metrics.disabledMetrics"},
		{"--requestheader-extra-headers-prefix=", ""},
		{"--authentication-token-webhook-cache-ttl=x", `invalid argument "x" for "--authentication-token-webhook-cache-ttl" flag`},
		{"--kubeconfig=/does/not/exist", "/does/not/exist"},
		{"--config=/does/not/exist", "open /does/not/exist: no such file or directory"},
		{"--tls-min-version=VersionTLS09 --kubeconfig=" + kubeconfig, `unknown tls version "VersionTLS09"`},
		{"--tls-cipher-suites=NOPE --kubeconfig=" + kubeconfig, "Cipher suite NOPE not supported or doesn't exist"},
		{"--tls-cert-file=/does/not/exist --tls-private-key-file=/does/not/exist --kubeconfig=" + kubeconfig, "open /does/not/exist: no such file or directory"},
		{"--leader-elect-resource-lock=endpoints --secure-port=0 --kubeconfig=" + kubeconfig, "endpoints"},
	} {
		for _, s := range both {
			// Where upstream wants a kubeconfig first, the lack of one is what it says of a line that it does not
			// refuse.
			if said, code := s.run(t, tt.line); code != 1 || !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), tt.words) {
				t.Errorf("%s %s: exit code %d, want 1 and %q:\n%s", s.name, tt.line, code, tt.words, last(said))
			}
		}
	}
}

// last is the end of what a command said.
func last(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// theFile sets some of what a file can set.
const theFile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 4
podInitialBackoffSeconds: 2
leaderElection: {leaderElect: false, resourceName: mine}
clientConnection: {kubeconfig: %q, qps: 70, burst: 80}
extenders: [{urlPrefix: "http://127.0.0.1:1", filterVerb: filter, ignorable: true, managedResources: [{name: example.com/foo}]}]
profiles:
- schedulerName: one
  plugins: {multiPoint: {disabled: [{name: ImageLocality}]}, score: {enabled: [{name: NodeResourcesFit, weight: 4}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 3}]}}}, {name: Kumiki, args: {seed: 7}}]
- schedulerName: two
  percentageOfNodesToScore: 50
  pluginConfig: [{name: Kumiki, args: {seed: 7}}]
`

// TestWhatOneWritesStartsTheOther: --write-config-to ends with exit code 0, and its file has the same effective
// configuration at both.
func TestWhatOneWritesStartsTheOther(t *testing.T) {
	both := sides(t)
	dir, kubeconfig := t.TempDir(), unreachable(t)
	given := filepath.Join(dir, "given.yaml")
	if err := os.WriteFile(given, fmt.Appendf(nil, theFile, kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ line, gates string }{ // order: each on its own
		"flags": {"--kubeconfig=" + kubeconfig + " --kube-api-qps=9 --kube-api-burst=11 --leader-elect-lease-duration=20s --leader-elect-resource-name=other --profiling=false --contention-profiling=false", ""},
		"file":  {"--config=" + given, ""},
		"1.36":  {"--config=" + given, " --emulated-version=1.36"},
	} {
		// means are the effective configurations of both files: first their own, then as the other writes it again.
		var means []config.Resolved
		for i, s := range both {
			first, again := filepath.Join(dir, name+s.name), filepath.Join(dir, name+s.name+"-again")
			if said, code := s.run(t, tt.line+tt.gates+" --secure-port=0 --write-config-to="+first); code != 0 {
				t.Fatalf("%s writing %s: exit code %d:\n%s", s.name, name, code, last(said))
			}
			other := both[1-i]
			if said, code := other.run(t, "--config="+first+tt.gates+" --secure-port=0 --write-config-to="+again); code != 0 {
				t.Fatalf("%s reading what %s wrote of %s: exit code %d:\n%s", other.name, s.name, name, code, last(said))
			}
			for _, file := range []string{first, again} {
				c, err := config.Read(file)
				if err != nil {
					t.Fatal(err)
				}
				c.Kumiki = config.Default().Kumiki // upstream writes no arguments for plugins that it does not run
				for i := range c.Profiles {
					// Upstream writes its own default of how many candidates are enough, and what is written is a
					// limit to kumiki, for which not to say means all nodes.
					c.Profiles[i].Args.DefaultPreemption = config.Default().Profiles[0].Args.DefaultPreemption
				}
				means = append(means, c)
			}
		}
		for i, c := range means[1:] {
			if !reflect.DeepEqual(c, means[0]) {
				t.Errorf("%s: what upstream wrote first comes to something else than file %d:\n%s", name, i+1, diff.Diff(means[0], c))
			}
		}
	}
}

// TestGatesAreTakenAlike sets every gate to both values, and AllAlpha and AllBeta, at the oldest and the newest
// version, with upstream's gates and with ours: the errors are the same, and so is every gate that results.
func TestGatesAreTakenAlike(t *testing.T) {
	known := options.NewOptions().ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableVersionedFeatureGate)
	values := []string{"AllAlpha=true", "AllAlpha=false", "AllBeta=true", "AllBeta=false", "AllAlpha=true,AllBeta=true"}
	for _, g := range Gates() {
		values = append(values, g.Name+"=true", g.Name+"=false")
	}
	type taker interface{ AddFlags(*pflag.FlagSet) }
	take := func(to taker, value, version string) {
		fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
		to.AddFlags(fs)
		if err := fs.Parse([]string{"--feature-gates=" + value, "--emulated-version=" + version}); err != nil {
			t.Fatal(err)
		}
	}
	for _, version := range []string{"1.34", "1.35", "1.36", "1.37"} {
		for _, value := range values {
			gate, upstream := known.DeepCopy(), basecompatibility.NewComponentGlobalsRegistry()
			if err := upstream.Register(basecompatibility.DefaultKubeComponent, basecompatibility.NewEffectiveVersionFromString("1.37.1", "1.34", "1.34"), gate); err != nil {
				t.Fatal(err)
			}
			take(upstream, value, version)
			want := upstream.Set()
			if want == nil {
				want = utilerrors.NewAggregate(upstream.Validate())
			}
			ours := gates.New()
			take(ours, value, version)
			if got := ours.Resolve(); !slices.Equal(sorted(got), sorted(want)) {
				t.Errorf("%s at %s: upstream says %v, kumiki %v", value, version, want, got)
			}
			for name := range gate.GetAll() { // order: each is compared
				if ours.Gate().Enabled(name) != gate.Enabled(name) {
					t.Errorf("%s at %s: %s is %t at upstream", value, version, name, gate.Enabled(name))
				}
			}
		}
	}
}

// sorted are the parts of an error. Upstream finds them in the order of a map.
func sorted(err error) []string {
	var out []string
	var parts utilerrors.Aggregate
	if errors.As(err, &parts) {
		for _, part := range parts.Errors() {
			out = append(out, sorted(part)...)
		}
	} else if err != nil {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return slices.Compact(out)
}
