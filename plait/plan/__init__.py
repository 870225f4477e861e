"""The plan: stores, probe trees and rules for the whole set of queries, as plain frozen data."""
