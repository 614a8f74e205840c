// SPDX-License-Identifier: Apache-2.0

// Package ecosystem owns running other projects' controllers beside kumiki on the local cluster, for tests
// (build tag ecosystem) and for readers of docs/tasks (cmd/component).
//
// A Component is pinned by a module of its own, ecosystem/NAME, and runs as a child process:
//
//   - Its program is built from that module, into bin/ecosystem/NAME.
//   - Its own manifests, from its module's directory, give the API server its resource definitions, its rights and its
//     webhooks. Webhooks are rewritten from a service to a loopback address, because the local cluster has no service
//     network. Deployments, services and the like are left out.
//   - It authenticates as the service account of its manifests, so missing rights show here as in a cluster.
//
// To add a component, create ecosystem/NAME/go.mod with a tool directive for its main package (GOWORK=off go get -tool
// PACKAGE@VERSION), a Component in a file of its own, its entry in All, and tests whose names begin with Test and NAME.
package ecosystem
