// SPDX-License-Identifier: Apache-2.0

// Package plugintest owns builders of pods, nodes and clusters, random ones among them, and checks that every
// plugin must pass: the plain form and the column form agree, hints are called for the registered events.
package plugintest
