// SPDX-License-Identifier: Apache-2.0

// Package config owns the meaning of a configuration file: KubeSchedulerConfiguration kubescheduler.config.k8s.io/v1,
// decoded strictly, defaulted, validated and resolved to what each profile runs. It is a leaf and imports nothing of
// kumiki.
//
// A file that kube-scheduler 1.37.1 accepts has the same meaning here; conformance/config compares the two on
// generated files and expects every difference by name. They are:
//
//   - plugins that belong to a feature gate which is off by default cannot be enabled; disabling one is fine;
//   - arguments for an unknown plugin are an error, where upstream ignores them: a typing error there would lose
//     settings silently;
//   - negative weights where nothing scores, and negative time-outs of extenders, are errors, and so are
//     times beyond what 64 bits hold;
//   - clientConnection.qps and burst limit only when they are written down;
//   - files that an extender's tlsConfig names are read when the scheduler starts, not when its configuration is
//     checked.
//
// Settings of our own live in pluginConfig under the name Kumiki, which upstream ignores, so one file starts both.
//
// Rejected: upstream's decoder over a runtime.Scheme. It reports neither lines nor more than one wrong value at a
// time, and its defaults are in a package that the root module must not import.
package config
