// SPDX-License-Identifier: Apache-2.0

package usage

import "github.com/spf13/pflag"

// Schedulers adds the flag --scheduler, with which every benchmark is given the schedulers to measure. It may be
// repeated, and one value may name several. Its former name --schedulers is accepted, too, and --rounds for --runs.
func Schedulers(fs *pflag.FlagSet, to *[]string, unless []string, help string) {
	fs.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "schedulers":
			name = "scheduler"
		case "rounds":
			name = "runs"
		}
		return pflag.NormalizedName(name)
	})
	fs.StringSliceVar(to, "scheduler", unless, help)
}
