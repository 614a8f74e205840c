// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strconv"
	"strings"

	utilversion "k8s.io/apimachinery/pkg/util/version"
	baseversion "k8s.io/component-base/version"
)

// reported is kube-scheduler's --version: true and raw print the version, vX.Y.Z-WORD changes what is printed and what
// /metrics tells.
type reported struct {
	mode string // empty, true or raw
	as   string // the version to report, if not the own one
}

// Type implements pflag.Value.
func (*reported) Type() string { return "version" }

// String implements pflag.Value.
func (r *reported) String() string {
	switch {
	case r.mode != "":
		return r.mode
	case r.as != "":
		return r.as
	}
	return "false"
}

// Set implements pflag.Value.
func (r *reported) Set(s string) error {
	if s == "raw" {
		r.mode = s
		return nil
	}
	if strings.HasPrefix(s, "v") {
		return r.report(s)
	}
	on, err := strconv.ParseBool(s)
	if err != nil {
		return err
	}
	if r.mode = ""; on {
		r.mode = "true"
	}
	return nil
}

func (r *reported) report(s string) error {
	given, err := utilversion.ParseSemantic(s)
	if err != nil {
		return err
	}
	if own := utilversion.MustParseSemantic(compatible); given.Major() != own.Major() ||
		given.Minor() != own.Minor() || given.Patch() != own.Patch() {
		return fmt.Errorf("version %q must match major/minor/patch of default version %q", s, compatible)
	}
	r.as, r.mode = s, ""
	// Only a binary that was linked as this version takes it; others go on to tell /metrics that they are from no
	// release.
	_ = baseversion.SetDynamicVersion(s)
	return nil
}

// text is what to print, or empty. Scripts read the second word.
func (r *reported) text() string {
	git := compatible
	if r.as != "" {
		git = r.as
	}
	switch r.mode {
	case "true":
		return fmt.Sprintf("Kubernetes %s (kumiki %s)", git, version)
	case "raw":
		own, info := utilversion.MustParseSemantic(compatible), baseversion.Get()
		info.Major, info.Minor, info.GitVersion = strconv.Itoa(int(own.Major())), strconv.Itoa(int(own.Minor())), git
		return fmt.Sprintf("%#v", info)
	}
	return ""
}
