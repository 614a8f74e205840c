// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"fmt"
	"os"
)

// Release is a minor release of Kubernetes that the local cluster can run. Each is a program of its own, built from the
// same source with the modules of that release.
type Release string

const (
	// Matched is the release of the kube-scheduler that kumiki equals.
	Matched Release = "1.37"
	// Previous is the release before it.
	Previous Release = "1.36"
)

// ReleaseEnv names the release of clusters whose options name none. It runs tests against another release.
const ReleaseEnv = "KUMIKI_KUBERNETES"

// ParseRelease reads the name of a release; empty means Matched.
func ParseRelease(name string) (Release, error) {
	switch r := Release(name); r {
	case "":
		return Matched, nil
	case Matched, Previous:
		return r, nil
	}
	return "", fmt.Errorf("the local cluster has no Kubernetes %.32q, only %s and %s", name, Matched, Previous)
}

// orDefault returns the release, or that of the environment if none is named.
func (r Release) orDefault() (Release, error) {
	if r != "" {
		return ParseRelease(string(r))
	}
	r, err := ParseRelease(os.Getenv(ReleaseEnv))
	if err != nil {
		return "", fmt.Errorf("%s: %w", ReleaseEnv, err)
	}
	return r, nil
}

// suffix returns what the names of the files of a release end with, before their extension.
func (r Release) suffix() string {
	if r == Matched {
		return ""
	}
	return "-" + string(r)
}

func (r Release) binary() string { return BinaryName + r.suffix() }

// buildFlags returns the flags of the go command that choose the modules of a release, and the source that differs from
// that of the matched one.
func (r Release) buildFlags() []string {
	if r == Matched {
		return nil
	}
	return []string{"-modfile=go" + r.suffix() + ".mod", "-tags=previous"}
}

const gangGates = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"

// GangGates returns the feature gates of the control plane with which native pod groups work, with all that may stand
// in one.
func (r Release) GangGates() string {
	if r == Previous {
		return gangGates + ",GangScheduling=true,WorkloadAwarePreemption=true"
	}
	return gangGates
}

// GangVersion returns the version of scheduling.k8s.io in which a release serves pod groups, on request.
func (r Release) GangVersion() string {
	if r == Previous {
		return "v1alpha2"
	}
	return "v1beta1"
}
