// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/component-base/featuregate"
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
		{"--feature-gates=wardle:GangScheduling=true", "component not registered: wardle"},
		{"--feature-gates=GangScheduling", "missing bool value for GangScheduling"},
		{"--feature-gates=GangScheduling=maybe",
			`invalid value of GangScheduling=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"--feature-gates=DRAAdminAccess=false",
			"cannot set feature gate DRAAdminAccess to false, feature is locked to true"},
		{"--feature-gates=GangScheduling=true",
			"GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]"},
		{"--feature-gates=PodLevelResources=true,kube:AllBeta=false",
			"set kube feature gates with default empty prefix or kube: prefix consistently"},
		{"--emulated-version=1.32", "emulation version 1.32 is not between [1.33, 1.36.0]"},
		{"--emulated-version=1.37", "emulation version 1.37 is not between [1.33, 1.36.0]"},
		{"--emulated-version=1.35.1", "patch version not allowed, got: kube=1.35.1"},
		{"--emulated-version=wardle=1.35", "component not registered: wardle"},
		{"--emulated-version=new", `could not parse "new" as version`},
		{"--emulated-version=1.34,kube=1.35", "duplicate version flag, kube=1.34 and kube=1.35"},
		{"--feature-gates=AllAlpha=true,GangScheduling=false",
			"WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]"},
		{"--emulated-version=1.33 --feature-gates=GenericWorkload=true",
			"feature is PreAlpha at emulated version 1.33"},
		{"--min-compatibility-version=1.32", "minCompatibilityVersion version 1.32 is not between [1.33, 1.36]"},
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
		{"", map[string]bool{"WatchListClient": true, "NativeHistograms": false}, "",
			map[string]bool{"GangScheduling": false, "SchedulerAsyncAPICalls": true}},
		{"--feature-gates=WatchListClient=false,NativeHistograms=true",
			map[string]bool{"WatchListClient": false, "NativeHistograms": true}, "", nil},
		{"--feature-gates=kube:GenericWorkload=true --feature-gates=kube:GangScheduling=true " +
			"--feature-gates=kube:WorkloadAwarePreemption=true", map[string]bool{"GangScheduling": true},
			// a setting decides about the other two
			"WorkloadAwarePreemption=true", map[string]bool{"WorkloadAwarePreemption": false}},
		{"--feature-gates=PodLevelResources=true,DRAAdminAccess=true", nil, "", nil},
		{"--feature-gates=DRADeviceTaints=false", map[string]bool{"DRADeviceTaints": false}, "DRADeviceTaints=false",
			map[string]bool{"DRADeviceTaints": true}},
		{"--feature-gates=OpportunisticBatching=true", nil, "OpportunisticBatching=true", nil},
		{"--feature-gates=OpportunisticBatching=false,SchedulerAsyncAPICalls=true", nil, "", nil},
		{"--feature-gates=AllAlpha=true,VolumeLimitScaling=true,StorageCapacityScoring=false",
			map[string]bool{"GenericWorkload": true, "StorageCapacityScoring": false, "NativeHistograms": true},
			"*VolumeLimitScaling=true", nil},
		{"--feature-gates=AllBeta=false", map[string]bool{"WatchListClient": false}, "*PodLevelResources=false",
			map[string]bool{"PodLevelResources": true}},
		{"--emulated-version=1.33", map[string]bool{"WatchListClient": false}, "*DRAConsumableCapacity=false", nil},
		{"--emulated-version=kube=1.36 --min-compatibility-version=1.36", nil, "", nil},
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
	documented := map[string]bool{}                                                                   // gate -> on
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		name, state := strings.Trim(cells[1], " `"), strings.TrimSpace(cells[4])
		if on, is := meaning[state]; is {
			documented[name] = on
		}
	}
	if !reflect.DeepEqual(documented, held) {
		t.Errorf("docs/compatibility.md says %v\nheld is %v", documented, held)
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
