// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Reanalysis applies the rules of this program to profiles that a check kept.
type Reanalysis struct {
	// Dir is Options.Dir of the check. Nothing in it is changed.
	Dir string
	// Results are those of the check: they say what was injected, and with which strength.
	Results []Result
	// Cases and Seeds select from them; no seeds are all seeds.
	Cases []Case
	Seeds []uint64
	// Rules identifies this program.
	Rules    string
	Progress io.Writer
}

// Run returns the results that today's rules give. A gain is compared where the check measured one, or would have: the
// profile without the cause is there.
func (a *Reanalysis) Run() (list []Result) {
	for _, was := range latest(a.Results) {
		known := slices.ContainsFunc(a.Cases, func(c Case) bool { return c.Name == was.Name })
		if !known || len(a.Seeds) > 0 && !slices.Contains(a.Seeds, was.Seed) {
			continue
		}
		r := a.one(&was)
		fmt.Fprintln(a.Progress, r.describe())
		list = append(list, r)
	}
	return list
}

// one analyses the profiles of an injection.
func (a *Reanalysis) one(was *Result) Result {
	r := Result{Programs: was.Programs, Rules: a.Rules, Scheduler: was.Scheduler, Name: was.Name,
		Injected: was.Injected, Seed: was.Seed, Strength: was.Strength, Baseline: was.Baseline, Seconds: was.Seconds}
	profile := func(removed bool) string {
		return filepath.Join(a.Dir, directory(r.Scheduler, r.Name, r.Seed, removed), profileName)
	}
	var err error
	if r.Verdict, err = verdictOf(profile(false)); err != nil {
		r.Error = err.Error()
		return r
	}
	if !r.Right() || r.Baseline != nil {
		return r
	}
	after, err := verdictOf(profile(true))
	switch {
	case err == nil:
		r.Gain = gainOf(&r.Verdict, &after)
	case !errors.Is(err, os.ErrNotExist):
		r.Error = err.Error()
	}
	return r
}
