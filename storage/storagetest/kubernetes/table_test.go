package kubernetes

import (
	"testing"

	"k8s.io/apiserver/pkg/features"
	storagetesting "k8s.io/apiserver/pkg/storage/testing"
)

// suiteTests says for each function of the suite how it is set up. The set-up
// is that of etcd3's own tests (store_test.go and watcher_test.go), and the
// watch cache's where those have none.
func suiteTests() map[string]suiteTest {
	return map[string]suiteTest{
		"RunTestCreate": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestCreate(f.ctx, t, f.store, f.storedObject)
		}),
		"RunTestCreateWithTTL": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestCreateWithTTL(f.ctx, t, f.store)
		}),
		"RunTestCreateWithKeyExist": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestCreateWithKeyExist(f.ctx, t, f.store)
		}),
		"RunTestGet": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGet(f.ctx, t, f.store)
		}),
		"RunTestUnconditionalDelete": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestUnconditionalDelete(f.ctx, t, f.store)
		}),
		"RunTestConditionalDelete": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestConditionalDelete(f.ctx, t, f.store)
		}),
		"RunTestDeleteWithSuggestion": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithSuggestion(f.ctx, t, f.store)
		}),
		"RunTestDeleteWithSuggestionAndConflict": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithSuggestionAndConflict(f.ctx, t, f.store)
		}),
		"RunTestDeleteWithConflict": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithConflict(f.ctx, t, f.store)
		}),
		"RunTestDeleteWithSuggestionOfDeletedObject": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithSuggestionOfDeletedObject(f.ctx, t, f.store)
		}),
		"RunTestValidateDeletionWithSuggestion": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestValidateDeletionWithSuggestion(f.ctx, t, f.store)
		}),
		"RunTestValidateDeletionWithOnlySuggestionValid": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestValidateDeletionWithOnlySuggestionValid(f.ctx, t, f.store)
		}),
		"RunTestPreconditionalDeleteWithSuggestion": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestPreconditionalDeleteWithSuggestion(f.ctx, t, f.store)
		}),
		"RunTestPreconditionalDeleteWithOnlySuggestionPass": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass(f.ctx, t, f.store)
		}),
		"RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError": withFailure(func(t *testing.T, f *fixture, setFailing func(bool)) {
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(f.ctx, t, f.store, setFailing)
		}),
		"RunTestDeleteExpectedTransformOrDecodeError": withFailure(func(t *testing.T, f *fixture, setFailing func(bool)) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(f.ctx, t, f.store, setFailing)
		}),
		"RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError": withGate(features.AllowUnsafeMalformedObjectDeletion, true, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(f.ctx, t, f.store)
		})),
		"RunTestList": bothRanges(onStore(func(t *testing.T, f *fixture) {
			recorder := f.client.Kubernetes.(*storagetesting.KubernetesRecorder)
			storagetesting.RunTestList(f.ctx, t, f.store, f.compact, false, recorder)
		})),
		"RunTestConsistentList": bothRanges(onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestConsistentList(f.ctx, t, f.store, f.increaseRevision, false, true, false)
		})),
		"RunTestGetListNonRecursive": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGetListNonRecursive(f.ctx, t, f.increaseRevision, f.store)
		}),
		"RunTestGetListRecursivePrefix": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGetListRecursivePrefix(f.ctx, t, f.store)
		}),
		"RunTestGetListWithErrorAggregation": withGate(features.AllowUnsafeMalformedObjectDeletion, true, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGetListWithErrorAggregation(f.ctx, t, f.corruptible(), corruptError())
		})),
		"RunTestGetListWithoutErrorAggregation": withGate(features.AllowUnsafeMalformedObjectDeletion, false, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGetListWithoutErrorAggregation(f.ctx, t, overrideStore{f.store, f.transformer}, corruptError())
		})),
		"RunTestListContinuation": bothRanges(onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListContinuation(f.ctx, t, f.store, f.storageCalls)
		})),
		"RunTestListPaginationRareObject": withGate(features.ListFromCacheSnapshot, false, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListPaginationRareObject(f.ctx, t, f.store, f.storageCalls)
		})),
		"RunTestListContinuationWithFilter": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListContinuationWithFilter(f.ctx, t, f.store, f.storageCalls)
		}),
		"RunTestListInconsistentContinuation": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListInconsistentContinuation(f.ctx, t, f.store, f.compact)
		}),
		"RunTestListResourceVersionMatch": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListResourceVersionMatch(f.ctx, t, f.prefixed())
		}),
		"RunTestListPaging": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestListPaging(f.ctx, t, f.store)
		}),
		"RunTestNamespaceScopedList": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestNamespaceScopedList(f.ctx, t, f.store)
		}),
		"RunTestGuaranteedUpdate": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGuaranteedUpdate(f.ctx, t, f.prefixed(), f.storedObject)
		}),
		"RunTestGuaranteedUpdateWithTTL": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGuaranteedUpdateWithTTL(f.ctx, t, f.store)
		}),
		"RunTestGuaranteedUpdateChecksStoredData": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGuaranteedUpdateChecksStoredData(f.ctx, t, f.prefixed())
		}),
		"RunTestGuaranteedUpdateWithConflict": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGuaranteedUpdateWithConflict(f.ctx, t, f.store)
		}),
		"RunTestGuaranteedUpdateWithSuggestionAndConflict": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict(f.ctx, t, f.store)
		}),
		"RunTestTransformationFailure": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestTransformationFailure(f.ctx, t, f.prefixed())
		}),
		"RunTestStats": func(t *testing.T, backend backend) {
			for name, sizes := range map[string]bool{"with sizes": true, "without sizes": false} {
				t.Run(name, func(t *testing.T) {
					f := newFixture(t, backend, fixtureOptions{})
					if sizes {
						if err := f.store.EnableResourceSizeEstimation(f.podKeys); err != nil {
							t.Fatal(err)
						}
					}
					storagetesting.RunTestStats(f.ctx, t, f.store, f.codec, f.transformer, sizes)
				})
			}
		},
		"RunTestCompactRevision": withGate(features.ListFromCacheSnapshot, true, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestCompactRevision(f.ctx, t, f.store, f.increaseRevision, f.compact)
		})),
		"RunTestKeySchema": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestKeySchema(f.ctx, t, f.store)
		}),

		"RunTestWatch": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatch(f.ctx, t, f.store)
		}),
		"RunTestClusterScopedWatch": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestClusterScopedWatch(f.ctx, t, f.store)
		}),
		"RunTestNamespaceScopedWatch": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestNamespaceScopedWatch(f.ctx, t, f.store)
		}),
		"RunTestDeleteTriggerWatch": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteTriggerWatch(f.ctx, t, f.store)
		}),
		"RunTestWatchFromZero": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchFromZero(f.ctx, t, f.store, f.compact)
		}),
		"RunTestWatchFromNonZero": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchFromNonZero(f.ctx, t, f.store)
		}),
		"RunTestDelayedWatchDelivery": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestDelayedWatchDelivery(f.ctx, t, f.store)
		}),
		"RunTestWatchError": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchError(f.ctx, t, f.prefixed())
		}),
		"RunTestWatchContextCancel": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchContextCancel(f.ctx, t, f.store)
		}),
		"RunTestWatcherTimeout": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatcherTimeout(f.ctx, t, f.store)
		}),
		"RunTestWatchDeleteEventObjectHaveLatestRV": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV(f.ctx, t, f.store)
		}),
		"RunTestWatchInitializationSignal": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchInitializationSignal(f.ctx, t, f.store)
		}),
		"RunOptionalTestProgressNotify": everySecond(func(t *testing.T, f *fixture) {
			storagetesting.RunOptionalTestProgressNotify(f.ctx, t, f.store, f.increaseRevision)
		}),
		"RunTestWatchWithUnsafeDelete": withGate(features.AllowUnsafeMalformedObjectDeletion, true, onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchWithUnsafeDelete(f.ctx, t, overrideStore{f.store, f.transformer}, corruptError())
		})),
		"RunTestWatchDispatchBookmarkEvents": everySecond(func(t *testing.T, f *fixture) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(f.ctx, t, f.store, false)
		}),
		"RunTestOptionalWatchBookmarksWithCorrectResourceVersion": onCache(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
		"RunSendInitialEventsBackwardCompatibility": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunSendInitialEventsBackwardCompatibility(f.ctx, t, f.store)
		}),
		"RunWatchSemantics": bothRanges(onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunWatchSemantics(f.ctx, t, f.store)
		})),
		"RunWatchSemanticInitialEventsExtended": bothRanges(onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunWatchSemanticInitialEventsExtended(f.ctx, t, f.store)
		})),
		"RunWatchListMatchSingle": bothRanges(onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunWatchListMatchSingle(f.ctx, t, f.store)
		})),
		"RunWatchErrorIsBlockingFurtherEvents": onStore(func(t *testing.T, f *fixture) {
			storagetesting.RunWatchErrorIsBlockingFurtherEvents(f.ctx, t, f.prefixed())
		}),
	}
}
