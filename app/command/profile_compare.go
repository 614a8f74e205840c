// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/compare"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
)

func newProfileCompareCommand(io streams) *cobra.Command {
	var out output
	limit := 15
	c := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare two profiles, or two groups of profiles",
		Long: `Compare two recorded profiles: the time from creation to bind of the pods that both have, aligned by
name, their phases where both schedulers report them, CPU time and allocations per pod, by lane, plugin
and function, and cycles. Differences are B minus A, with 95 % confidence intervals. Give several
recordings of one side, separated by commas; with three on each side, intervals cover the variation
between runs. A dash is a value that a profile does not have; the reason is below the tables.

The exit code is 0 if the comparison was made, 1 if a file cannot be read, and 2 for a mistake on the
command line.`,
		Example: `  kumiki profile compare before.kumiki after.kumiki
  kumiki bench --match '^spread/' --runs 3 --profile out/p
  kumiki profile compare a1.kumiki,a2.kumiki,a3.kumiki b1.kumiki,b2.kumiki,b3.kumiki -o json`,
		Args: args(cobra.ExactArgs(2)),
		RunE: func(_ *cobra.Command, a []string) error {
			if limit < 0 {
				return usageError{errors.New("--limit must not be negative")}
			}
			var sides [2][]compare.Round
			for i, list := range a {
				for _, name := range strings.Split(list, ",") {
					r, err := readRound(name)
					if err != nil {
						return err
					}
					sides[i] = append(sides[i], *r)
				}
			}
			result, err := compare.Compare(sides[0], sides[1])
			if err != nil {
				return err
			}
			return out.print(io.Out, result, func(wide bool) error {
				return text.Comparison(io.Out, result, limit, wide)
			})
		},
	}
	out.addFlag(c)
	c.Flags().IntVar(&limit, "limit", limit, "number of functions in the table; 0 shows all")
	c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"kumiki"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return c
}

// readRound reads what is compared of a file.
func readRound(name string) (*compare.Round, error) {
	b, err := bundle.Open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	r := &compare.Round{File: name}
	if r.Profile, err = apm.Analyze(b); err != nil {
		return nil, fmt.Errorf("analyzing %s: %w", name, err)
	}
	if r.Pods, err = apm.ReadPods(b); err != nil {
		if r.PodsWhy, err = missing(err); err != nil {
			return nil, fmt.Errorf("analyzing %s: %w", name, err)
		}
	}
	if r.Journeys, err = apm.ReadJourneys(b); err != nil {
		if r.JourneysWhy, err = missing(err); err != nil {
			return nil, fmt.Errorf("analyzing %s: %w", name, err)
		}
	}
	return r, nil
}

// missing returns the reason of a part that a bundle does not have. Other errors it returns.
func missing(err error) (string, error) {
	var m *bundle.Missing
	if errors.As(err, &m) {
		return m.Error(), nil
	}
	return "", err
}
