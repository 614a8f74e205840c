// SPDX-License-Identifier: Apache-2.0

// Package framework runs plugins that are written for the framework of kube-scheduler (k8s.io/kube-scheduler/framework)
// as plugins of kumiki.
//
// A Host belongs to one configuration, and has a Profile for each profile with such plugins. Profile.Add makes a plugin
// and returns an adapter, which implements the contract of core/plugin: Filter for PreFilter and Filter, UncachedScorer
// for PreScore, Score and NormalizeScore, Gate for PreEnqueue, Waker for EventsToRegister. One Reserver for all plugins
// of a profile (Profile.Reserver) stands for Reserve and Permit. PreBind, Bind and PostBind run outside of the loop
// (Host.Bind, Host.PostBind).
//
// The plugins of a profile share one CycleState in each decision. The NodeInfos follow the journal of the store: those
// of rows that did not change are used again, and the content of a NodeInfo is computed when a plugin reads it.
//
// Rejected: the port place.Foreign, which extenders use. It is called once after all native filters, with names of
// nodes, so that a plugin would not have its position in the profile, its own name in rejections, or its own events.
// Rejected: adapters that declare what a plugin reads, so that its verdicts are cached; the interfaces do not say it.
package framework
