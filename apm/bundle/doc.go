// SPDX-License-Identifier: Apache-2.0

// Package bundle owns the file format of profiles, `.kumiki`: a zip archive with a manifest and parts, such as an
// execution trace, profiles and scraped metrics. The manifest has the format version, what was recorded and when, and
// each part with its size and digest, or the reason why it is missing.
//
// A reader treats a file as input from another machine: sizes, the number of parts and the compression ratio have
// limits, names are compared with a closed form and never become paths, and a part is returned only after its size and
// digest were checked.
//
// Rejected: a directory of files. Users send a profile to somebody else, and a directory loses parts on the way.
// Rejected: tar with compression around it. A reader of one part would read all parts before it.
package bundle
