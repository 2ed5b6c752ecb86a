package shelduck.bridge;

/** Says that a rollup does not hold what it was chosen for, as its columns have other types. */
public class RollupMisfit extends RuntimeException {
  public RollupMisfit(String what) {
    super(what);
  }
}
