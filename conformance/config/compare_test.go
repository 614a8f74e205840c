// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/conformance/release"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
)

// TestConformance puts generated files to both sides. It prints how often each difference by design was met; one
// that is met never is out of date.
func TestConformance(t *testing.T) {
	seed, cases := sampling.Seed(t), min(sampling.Cases(t, 6000), 20_000)
	met := map[string]int{} // exception -> cases
	var valid, faulty, accepted, failed int
	for n := range cases {
		c := Generate(seed, uint64(n))
		result := Compare(c.Text, len(c.Faults) == 1)
		if len(c.Faults) == 0 {
			valid++
		} else {
			faulty++
		}
		if result.Upstream.Accepted() {
			accepted++
		} else if len(c.Faults) == 0 {
			t.Logf("seed %d, case %d was meant to be valid: %s", seed, n, result.Upstream.Text)
		}
		for _, name := range result.Exceptions {
			met[name]++
		}
		for _, d := range result.Unexplained {
			if failed++; failed <= 10 {
				t.Errorf("seed %d, case %d, faults %q: %s\nupstream: %q %s\nkumiki: %q %s\n%s", seed, n, c.Faults, d,
					result.Upstream.Paths, result.Upstream.Text, result.Kumiki.Paths, result.Kumiki.Text, c.Text)
			}
		}
	}
	t.Logf("seed %d: %d files, %d valid and %d with faults; upstream accepts %d; %d unexplained differences", seed, cases, valid, faulty, accepted, failed)
	for _, e := range Exceptions {
		t.Logf("%5d  %s: %s", met[e.Name], e.Name, e.Why)
		if met[e.Name] == 0 && seed == 1 && cases >= 6000 {
			t.Errorf("the difference %q is met by no file: it is out of date, or the generator must learn it", e.Name)
		}
	}
}

// TestWhatIsShownStartsBoth: what `kumiki config show` and --write-config-to write is a file for both sides, and
// means what was read.
func TestWhatIsShownStartsBoth(t *testing.T) {
	seed := sampling.Seed(t)
	shown := 0
	for n := 0; shown < 500; n++ {
		c := Generate(seed, uint64(n))
		answer, resolved := Kumiki(c.Text)
		if !answer.Accepted() || len(c.Faults) > 0 {
			continue
		}
		shown++
		wire, err := resolved.Wire()
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(wire)
		if err != nil {
			t.Fatal(err)
		}
		upstream := Upstream(text)
		if !upstream.Accepted() {
			if len(wire.Extenders) == 0 { // with them, it may be the known difference about ignored resources
				t.Errorf("seed %d, case %d: upstream refuses what is shown: %s\n%s", seed, n, upstream.Text, text)
			}
			continue
		}
		for _, d := range Differences(upstream.Effective, answer.Effective) {
			if !Exceptions[0].explains(d, nil) {
				t.Errorf("seed %d, case %d: %s\n%s", seed, n, d, text)
			}
		}
	}
}

// TestConformanceEmulated puts generated files to both sides with feature gates set otherwise, as a whole release or
// singly.
func TestConformanceEmulated(t *testing.T) {
	seed, cases := sampling.Seed(t), min(sampling.Cases(t, 6000), 20_000)/6
	for _, flags := range [][]string{
		{"--emulated-version=1.36"},
		{"--feature-gates=StorageCapacityScoring=false"},
		release.NothingDeclared,
		{"--emulated-version=1.35"},
		{"--emulated-version=1.34"},
		{"--feature-gates=DRADeviceBindingConditions=false"},
		{"--feature-gates=GenericWorkload=true"},
		{"--feature-gates=InPlacePodVerticalScalingSchedulerPreemption=true"},
		{"--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true,PodGroupPreemptionPolicy=true," +
			"InPlacePodVerticalScalingSchedulerPreemption=true"},
	} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			release.Emulate(t, flags...)
			var accepted, failed int
			for n := range cases {
				c := Generate(seed, uint64(n))
				result := Compare(c.Text, len(c.Faults) == 1)
				if result.Upstream.Accepted() {
					accepted++
				}
				for _, d := range result.Unexplained {
					if failed++; failed <= 5 {
						t.Errorf("seed %d, case %d, faults %q: %s\nupstream: %s\nkumiki: %s\n%s", seed, n, c.Faults, d,
							result.Upstream.Text, result.Kumiki.Text, c.Text)
					}
				}
			}
			t.Logf("seed %d: %d files, upstream accepts %d; %d unexplained differences", seed, cases, accepted, failed)
			if accepted < int(cases)/4 {
				t.Errorf("upstream accepts %d of %d files: the comparison says little", accepted, cases)
			}
		})
	}
}
