// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"

	"github.com/kumiki-scheduler/kumiki/config"
)

// parse makes gates out of a command line.
func parse(t *testing.T, line string) (*Gates, error) {
	t.Helper()
	g, fs := New(), pflag.NewFlagSet("test", pflag.ContinueOnError)
	g.AddFlags(fs)
	if err := fs.Parse(strings.Fields(line)); err != nil {
		return nil, err
	}
	return g, g.Resolve()
}

// TestWhatIsRefused: the words are upstream's, by conformance/flags.
func TestWhatIsRefused(t *testing.T) {
	for _, tt := range []struct{ line, wrong string }{
		{"--feature-gates=Nope=true", "unrecognized feature gate: Nope"},
		{"--feature-gates=kube:Nope=true", "unrecognized feature gate: Nope"},
		{"--feature-gates=wardle:GenericWorkload=true", "component not registered: wardle"},
		{"--feature-gates=GenericWorkload", "missing bool value for GenericWorkload"},
		{"--feature-gates=GenericWorkload=maybe",
			`invalid value of GenericWorkload=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"--feature-gates=DRAAdminAccess=false",
			"cannot set feature gate DRAAdminAccess to false, feature is locked to true"},
		{"--feature-gates=GangScheduling=true", "unrecognized feature gate: GangScheduling"},
		{"--feature-gates=WorkloadAwarePreemption=true", "unrecognized feature gate: WorkloadAwarePreemption"},
		{"--feature-gates=SchedulerQueueingHints=true", "unrecognized feature gate: SchedulerQueueingHints"},
		{"--emulated-version=1.36 --feature-gates=SidecarContainers=true",
			"unrecognized feature gate: SidecarContainers"},
		{"--feature-gates=TopologyAwareWorkloadScheduling=true",
			"TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"--feature-gates=PodLevelResources=true,kube:AllBeta=false",
			"set kube feature gates with default empty prefix or kube: prefix consistently"},
		{"--emulated-version=1.33", "emulation version 1.33 is not between [1.34, 1.37.0]"},
		{"--emulated-version=1.38", "emulation version 1.38 is not between [1.34, 1.37.0]"},
		{"--emulated-version=1.35.1", "patch version not allowed, got: kube=1.35.1"},
		{"--emulated-version=wardle=1.35", "component not registered: wardle"},
		{"--emulated-version=new", `could not parse "new" as version`},
		{"--emulated-version=1.34,kube=1.35", "duplicate version flag, kube=1.34 and kube=1.35"},
		{"--feature-gates=AllAlpha=true,GenericWorkload=false",
			"TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"--emulated-version=1.34 --feature-gates=GenericWorkload=true",
			"feature is PreAlpha at emulated version 1.34"},
		{"--min-compatibility-version=1.33", "minCompatibilityVersion version 1.33 is not between [1.34, 1.37]"},
	} {
		if _, err := parse(t, tt.line); err == nil || !strings.Contains(err.Error(), tt.wrong) {
			t.Errorf("%s: got %v, want %s", tt.line, err, tt.wrong)
		}
	}
}

// TestWhatGatesComeTo: by name, by stage, by version; and which of them change nothing.
func TestWhatGatesComeTo(t *testing.T) {
	for _, tt := range []struct {
		line    string
		set     map[string]bool // gate -> its value for the libraries
		idle    string          // with spaces; "*NAME" if that must be among others
		enabled map[string]bool // gate -> its effective value here
	}{
		{"", map[string]bool{"WatchListClient": true, "NativeHistograms": true}, "",
			map[string]bool{"GenericWorkload": false, "SchedulerAsyncAPICalls": true}},
		{"--feature-gates=WatchListClient=false,NativeHistograms=false",
			map[string]bool{"WatchListClient": false, "NativeHistograms": false}, "", nil},
		{"--feature-gates=kube:GenericWorkload=true --feature-gates=kube:TopologyAwareWorkloadScheduling=true " +
			"--feature-gates=kube:CompositePodGroup=true", map[string]bool{"GenericWorkload": true},
			// a setting decides about the other two
			"CompositePodGroup=true", map[string]bool{"CompositePodGroup": false}},
		{"--feature-gates=PodLevelResources=true,DRAAdminAccess=true", nil, "", nil},
		{"--feature-gates=DRADeviceTaints=false,DRADeviceTaintRules=false", map[string]bool{"DRADeviceTaints": false},
			"", map[string]bool{"DRADeviceTaints": false, "DRADeviceTaintRules": false}},
		{"--feature-gates=OpportunisticBatching=true", nil, "OpportunisticBatching=true", nil},
		{"--feature-gates=OpportunisticBatching=false,SchedulerAsyncAPICalls=true", nil, "", nil},
		{"--feature-gates=AllAlpha=true,VolumeLimitScaling=true,StorageCapacityScoring=false,GenericWorkload=true",
			map[string]bool{"GenericWorkload": true, "StorageCapacityScoring": false, "NativeHistograms": true},
			"*TaintTolerationComparisonOperators=true", map[string]bool{"StorageCapacityScoring": false}},
		{"--feature-gates=StorageCapacityScoring=false,VolumeLimitScaling=false",
			map[string]bool{"StorageCapacityScoring": false}, "", map[string]bool{"VolumeLimitScaling": false}},
		{"--emulated-version=1.36", map[string]bool{"StorageCapacityScoring": false, "NativeHistograms": false}, "",
			map[string]bool{"VolumeLimitScaling": false, "NodeDeclaredFeatures": true}},
		{"--feature-gates=AllBeta=false", map[string]bool{"WatchListClient": false}, "*PodLevelResources=false",
			map[string]bool{"PodLevelResources": true}},
		{"--emulated-version=1.34", map[string]bool{"WatchListClient": false}, "*DRAExtendedResource=false", nil},
		{"--emulated-version=kube=1.37 --min-compatibility-version=1.37", nil, "",
			map[string]bool{"DRAFractionalCapacityRange": true}},
		{"--feature-gates=WindowsGracefulNodeShutdown=false", nil, "", nil}, // of nodes
	} {
		g, err := parse(t, tt.line)
		if err != nil {
			t.Errorf("%q: %v", tt.line, err)
			continue
		}
		for name, want := range tt.set { // order: each is compared
			if got := g.Gate().Enabled(featuregate.Feature(name)); got != want {
				t.Errorf("%q: %s is %t", tt.line, name, got)
			}
		}
		for name, want := range tt.enabled { // order: each is compared
			if got := g.Enabled(name); got != want {
				t.Errorf("%q: %s comes to %t", tt.line, name, got)
			}
		}
		got := strings.Join(g.Idle(), " ")
		if part, among := strings.CutPrefix(tt.idle, "*"); among && !strings.Contains(got, part) || !among &&
			got != tt.idle {
			t.Errorf("%q: change nothing: %s; want %s", tt.line, got, tt.idle)
		}
		if (g.Warning() == "") != (got == "") || strings.Contains(g.Warning(), "\n") {
			t.Errorf("%q: the warning is %q", tt.line, g.Warning())
		}
	}
}

// TestSwitches: a gate that kumiki asks is no longer named as one that changes nothing.
func TestSwitches(t *testing.T) {
	for line, want := range map[string]Switches{
		"": {true, true, false}, "--feature-gates=ComponentFlagz=false": {false, true, false},
		"--feature-gates=ComponentStatusz=false":         {true, false, false},
		"--emulated-version=1.35":                        {},
		"--feature-gates=CoordinatedLeaderElection=true": {true, true, true},
	} {
		g, err := parse(t, line)
		if err != nil || g.Switches() != want || strings.Contains(g.Warning(), "Component") ||
			strings.Contains(g.Warning(), "Coordinated") {
			t.Errorf("%q: got %+v, %v, %q", line, g.Switches(), err, g.Warning())
		}
	}
}

// TestFeatures: each field has the value of the gate of its name, and no other gate decides on it.
func TestFeatures(t *testing.T) {
	if got := New().Features(); got != config.DefaultFeatures() {
		t.Errorf("features without flags: %+v", got)
	}
	of := func(line string) (features reflect.Value, ok bool) {
		g, err := parse(t, line)
		if err != nil {
			return reflect.Value{}, false
		}
		return reflect.ValueOf(g.Features()), true
	}
	with := map[string]string{ // gate -> what it depends on
		"TopologyAwareWorkloadScheduling": " --feature-gates=GenericWorkload=true",
		"PodGroupPreemptionPolicy":        " --feature-gates=GenericWorkload=true",
	}
	for i, fields := 0, reflect.TypeFor[config.Features](); i < fields.NumField(); i++ {
		name, switched := fields.Field(i).Name, false
		for _, version := range []string{"1.34", "1.35", "1.36", "1.37"} {
			line := "--emulated-version=" + version + with[name]
			was, known := of(line)
			if !known && with[name] == "" {
				t.Fatalf("%s is refused", line)
			} else if !known {
				continue
			}
			line += fmt.Sprintf(" --feature-gates=%s=%t", name, !was.Field(i).Bool())
			got, accepted := of(line)
			if !accepted { // unknown there, locked, or another gate depends on it
				continue
			}
			switched = true
			for j := range fields.NumField() {
				if want := was.Field(j).Bool() != (j == i); got.Field(j).Bool() != want {
					t.Errorf("%s: %s is %t", line, fields.Field(j).Name, !want)
				}
			}
		}
		if !switched {
			t.Errorf("%s cannot be set at any version", name)
		}
	}
}

// TestTheTableIsTheOneInTheDocs holds held to docs/compatibility.md, which conformance/config holds to upstream.
func TestTheTableIsTheOneInTheDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "\n## Feature gates\n")
	if !found {
		t.Fatal("docs/compatibility.md has no section on feature gates")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	meaning := map[string]bool{"fixed on": true, "built": true, "unsupported": false, "later": false} // state -> on
	documented, followed := map[string]bool{}, map[string]bool{}                                      // gate -> on; gate -> followed
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		name, state := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[4])
		if on, is := meaning[state]; is {
			documented[name] = on
		} else if state == "followed" {
			followed[name] = true
		}
	}
	if !reflect.DeepEqual(documented, held) {
		t.Errorf("docs/compatibility.md says %v\nheld is %v", documented, held)
	}
	read := map[string]bool{"ComponentFlagz": true, "ComponentStatusz": true, "CoordinatedLeaderElection": true}
	for i, fields := 0, reflect.TypeFor[config.Features](); i < fields.NumField(); i++ {
		// These add plugins without effect to the default profile; the table says what decides instead.
		if name := fields.Field(i).Name; !slices.Contains([]string{"GenericWorkload", "TopologyAwareWorkloadScheduling",
			"InPlacePodVerticalScalingSchedulerPreemption"}, name) {
			read[name] = true
		}
	}
	if !reflect.DeepEqual(followed, read) {
		t.Errorf("docs/compatibility.md says that these are followed: %v\nthese are: %v", followed, read)
	}
}

// TestTheLibrariesFindTheirGates: what client-go and k8s.io/apiserver may ask is in the table, with the stages that
// it has there; a library of another version makes this fail.
func TestTheLibrariesFindTheirGates(t *testing.T) {
	have := New().gate.GetAllVersioned()
	if len(utilfeature.DefaultMutableFeatureGate.GetAll()) < 20 {
		t.Fatal("the gates of k8s.io/apiserver are not registered")
	}
	for name, specs := range utilfeature.DefaultMutableFeatureGate.GetAllVersioned() { // order: each is compared
		if !reflect.DeepEqual(have[name], specs) {
			t.Errorf("k8s.io/apiserver has %s as %v, the table as %v", name, specs, have[name])
		}
	}
	clients := listed{}
	if err := clientfeatures.AddVersionedFeaturesToExistingFeatureGates(&clients); err != nil || len(clients) == 0 {
		t.Fatalf("gates of client-go: %v, %v", clients, err)
	}
	for name, specs := range clients { // order: each is compared
		of := have[featuregate.Feature(name)]
		if len(of) != len(specs) {
			t.Errorf("client-go has %s as %v, the table as %v", name, specs, of)
			continue
		}
		for i, s := range specs {
			if of[i].Default != s.Default || of[i].LockToDefault != s.LockToDefault ||
				!of[i].Version.EqualTo(s.Version) {
				t.Errorf("client-go has %s as %v, the table as %v", name, specs, of)
			}
		}
	}
}

type listed map[clientfeatures.Feature]clientfeatures.VersionedSpecs

func (l *listed) AddVersioned(in map[clientfeatures.Feature]clientfeatures.VersionedSpecs) error {
	*l = in
	return nil
}

// TestApply: the libraries of this process see what was set. It leaves them at their defaults.
func TestApply(t *testing.T) {
	for _, tt := range []struct {
		line string
		want bool
	}{{"--feature-gates=WatchListClient=false,APIResponseCompression=false", false}, {"", true}} {
		g, err := parse(t, tt.line)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Apply(); err != nil {
			t.Fatal(err)
		}
		if got := clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient); got != tt.want {
			t.Errorf("%q: client-go gets %t", tt.line, got)
		}
		if got := utilfeature.DefaultFeatureGate.Enabled("APIResponseCompression"); got != tt.want {
			t.Errorf("%q: k8s.io/apiserver gets %t", tt.line, got)
		}
	}
}
