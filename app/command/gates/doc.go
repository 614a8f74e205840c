// SPDX-License-Identifier: Apache-2.0

// Package gates owns the feature gates of the command: it knows every gate of kube-scheduler 1.37.1 (table.json, made
// by conformance/flags), parses --feature-gates, --emulated-version and --min-compatibility-version, rejects what
// upstream rejects, reports which of the configured gates have no effect here, and passes the rest to the libraries
// that read them.
//
// The machinery is component-base's, so refusals come in upstream's words. Gates are kept apart from the registries
// of the process until Apply: a command line can be checked without a trace. Registering the gates in the registry of
// k8s.io/apiserver, as upstream does, was rejected for that, and because a second command in one process could not.
package gates
