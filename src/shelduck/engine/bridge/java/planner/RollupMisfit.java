package shelduck.bridge.planner;

/** A rollup does not hold what it was chosen for, because its columns have other types. */
public class RollupMisfit extends RuntimeException {
  public RollupMisfit(String what) {
    super(what);
  }
}
